//go:build unix

package jail

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
)

const value = "Zq7-Xk9_Wv3+Jh5/Ty1=Mn8"

// known returns a redactor that knows the value, and two of its forms.
func known() (*redact.Redactor, map[string]string) {
	r := new(redact.Redactor)
	r.Add(value)
	return r, map[string]string{"plain": value, "base64": base64.StdEncoding.EncodeToString([]byte(value))}
}

// piece returns four bytes of a text that another text contains.
func piece(of string, in []byte) string {
	for i := range len(of) - 3 {
		if bytes.Contains(in, []byte(of[i:i+4])) {
			return of[i : i+4]
		}
	}
	return ""
}

func TestNoPieceOfASecretIsLeftWhereOutputIsCut(t *testing.T) {
	r, forms := known()
	for form, leak := range forms {
		for _, chunk := range []int{1, 7, 1000} {
			for before := range 120 {
				for _, behind := range []int{0, 5, 200} {
					h := newHeadTail(64)
					clean := r.Writer(h)
					for rest := []byte(strings.Repeat(".", before) + leak + strings.Repeat(",", behind)); len(rest) > 0; {
						k := min(chunk, len(rest))
						if n, err := clean.Write(rest[:k]); n != k || err != nil {
							t.Fatalf("wrote %d of %d: %v", n, k, err)
						}
						rest = rest[k:]
					}
					clean.Flush()
					if p := piece(leak, h.bytes()); p != "" {
						t.Fatalf("%s, %d before, %d behind, in pieces of %d: %q is in %q", form, before, behind, chunk, p, h.bytes())
					}
				}
			}
		}
	}
	// What only looks like a beginning comes with the end.
	h := newHeadTail(64)
	clean := r.Writer(h)
	fmt.Fprint(clean, "so "+value[:8])
	if clean.Flush(); string(h.bytes()) != "so "+value[:8] {
		t.Errorf("got %q", h.bytes())
	}
}

func TestTheOutputOfACommandIsRedacted(t *testing.T) {
	r, forms := known()
	dir := t.TempDir()
	for form, leak := range forms {
		// In two writes, and so that a limit of 200 bytes cuts it in both streams.
		script := fmt.Sprintf("printf '%%090d%s' 0; printf '%s%%0200d%s' 0; printf '%%090d%s%%0200d' 0 0 >&2", leak[:5], leak[5:], leak, leak)
		for _, merged := range []bool{false, true} {
			cmd := bash(dir, script)
			cmd.MergeStderr, cmd.RenderTerminal = merged, true
			out, err := newJail(t, Options{Redact: r}).Run(t.Context(), grantFor(t, dir, script, policy.Limits{ExecOutputBytes: 200}), cmd)
			if err != nil || !out.Truncated {
				t.Fatalf("%s, %v", describe(out), err)
			}
			if p := piece(leak, slices.Concat(out.Stdout, out.Stderr, out.RawOutput)); p != "" {
				t.Errorf("%s, merged %v: %q is in %s", form, merged, p, describe(out))
			}
		}
		script = fmt.Sprintf("printf '%%s\\033[0m%%s\\n' '%s' '%s'", leak[:9], leak[9:]) // together on the screen
		cmd := bash(dir, script)
		cmd.RenderTerminal = true
		shown, err := newJail(t, Options{Redact: r}).Run(t.Context(), grantFor(t, dir, script, policy.Limits{}), cmd)
		if err != nil || piece(leak, shown.Stdout) != "" {
			t.Errorf("%s: %s, %v", form, describe(shown), err)
		}
		script = "echo " + leak + "; sleep 1000"
		limits := policy.Limits{ExecTimeout: 300 * time.Millisecond, ExecTimeoutMax: 300 * time.Millisecond}
		out, err := newJail(t, Options{Redact: r}).Run(t.Context(), grantFor(t, dir, script, limits), bash(dir, script))
		if err != nil || !out.TimedOut || piece(leak, out.Stdout) != "" {
			t.Errorf("%s: %s, %v", form, describe(out), err)
		}
	}
}

// The output of a command can be watched while it runs: its beginning, in whole lines, and
// without secrets.
func TestTheBeginningIsShown(t *testing.T) {
	for command, want := range map[string]string{
		"echo one; echo two >&2; printf three": "one\ntwo\nthree",
		"echo a; echo '" + value + "'; echo b": "",
		"seq 100000":                           "",
		"true":                                 "",
	} {
		r, _ := known()
		j := newJail(t, Options{Redact: r})
		dir := t.TempDir()
		cmd := bash(dir, command)
		var shown []string
		cmd.MergeStderr, cmd.OnOutput = true, func(text string) { shown = append(shown, text) }
		ended, err := j.Run(t.Context(), grantFor(t, dir, command, policy.Limits{}), cmd)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(shown, "")
		if strings.Contains(command, value) {
			want = string(ended.Stdout)
		}
		if strings.Contains(all, value) {
			t.Errorf("%s: the secret is shown", command)
		}
		if want == "" && len(ended.Stdout) > 0 {
			if len(all) != maxLiveBytes || !strings.HasPrefix(string(ended.Stdout), all[:1000]) {
				t.Errorf("%s: %d bytes were shown: %.100q", command, len(all), all)
			}
		} else if all != want || all != string(ended.Stdout) {
			t.Errorf("%s: shown %q of %q", command, all, ended.Stdout)
		}
		for _, text := range shown[:max(len(shown)-1, 0)] {
			if !strings.HasSuffix(text, "\n") {
				t.Errorf("%s: half a line: %.100q", command, text)
			}
		}
	}
}
