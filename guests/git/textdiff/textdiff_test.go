package textdiff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func unified(t *testing.T, a, b string) string {
	t.Helper()
	x, y := NewText([]byte(a)), NewText([]byte(b))
	changes, err := Diff(x, y, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = Unified(x, y, changes, func(mark byte, line []byte) error {
		out.WriteByte(mark)
		out.Write(line)
		if !bytes.HasSuffix(line, []byte("\n")) {
			out.WriteString("\n\\ No newline at end of file\n")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestUnified(t *testing.T) {
	for name, tt := range map[string]struct{ a, b, want string }{
		"the same":               {"a\nb\n", "a\nb\n", ""},
		"nothing before":         {"", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		"nothing after":          {"a\n", "", "@@ -1 +0,0 @@\n-a\n"},
		"no newline at the end":  {"a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"},
		"a line that is changed": {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n", "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"},
		"a function that is put before another": {
			"func a() {\n\tx\n}\n\nfunc b() {\n\ty\n}\n",
			"func a() {\n\tx\n}\n\nfunc n() {\n\tz\n}\n\nfunc b() {\n\ty\n}\n",
			"@@ -2,6 +2,10 @@ func a() {\n \tx\n }\n \n+func n() {\n+\tz\n+}\n+\n func b() {\n \ty\n }\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unified(t, tt.a, tt.b); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestLikeGit compares diffs of random texts with git's.
func TestLikeGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Log("git is not installed; nothing to compare with")
		return
	}
	dir := t.TempDir()
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 18))
		a, b := texts(rnd)
		for name, text := range map[string]string{"a": a, "b": b} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), git, "diff", "--no-index", "--no-ext-diff", "a", "b")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		out, _ := cmd.Output()
		want := ""
		if i := bytes.Index(out, []byte("\n@@")); i >= 0 {
			want = string(out[i+1:])
		}
		if got := unified(t, a, b); got != want {
			t.Fatalf("seed %d: ours is\n%s\nthat of git is\n%s", seed, got, want)
		}
	}
}

// texts makes a text that looks like a program, and a changed copy.
func texts(rnd *rand.Rand) (a, b string) {
	line := func() string {
		switch rnd.IntN(6) {
		case 0:
			return "\n"
		case 1:
			return strings.Repeat("\t", rnd.IntN(3)) + "}\n"
		case 2:
			return fmt.Sprintf("func f%d() {\n", rnd.IntN(20))
		}
		return strings.Repeat("\t", rnd.IntN(4)) + fmt.Sprintf("x%d\n", rnd.IntN(1+rnd.IntN(60)))
	}
	var lines []string
	for range rnd.IntN(1 << (1 + rnd.IntN(11))) {
		lines = append(lines, line())
	}
	after := append([]string(nil), lines...)
	for range rnd.IntN(1 + len(lines)/8 + 5) {
		at := rnd.IntN(len(after) + 1)
		end := min(at+rnd.IntN(6), len(after))
		var put []string
		for range rnd.IntN(6) {
			put = append(put, line())
		}
		if rnd.IntN(4) == 0 && len(lines) > 0 { // a copy
			from := rnd.IntN(len(lines))
			put = lines[from:min(from+rnd.IntN(8), len(lines))]
		}
		after = append(after[:at:at], append(append([]string(nil), put...), after[end:]...)...)
	}
	b = strings.Join(after, "")
	if rnd.IntN(5) == 0 {
		b = strings.TrimSuffix(b, "\n")
	}
	return strings.Join(lines, ""), b
}

func TestDiffEndsWithTheCall(t *testing.T) {
	var a, b strings.Builder
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		fmt.Fprintln(&a, rnd.IntN(5000))
		fmt.Fprintln(&b, rnd.IntN(5000))
	}
	x, y := NewText([]byte(a.String())), NewText([]byte(b.String()))
	_, err := Diff(x, y, func() error { return context.Canceled })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	// Comparing two unrelated texts takes a limited time.
	if _, err := Diff(x, y, nil); err != nil {
		t.Error(err)
	}
}
