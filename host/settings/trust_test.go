//go:build unix

package settings

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/config/keys"
)

// project returns the workspace's file with this content.
func project(t *testing.T, path, src string) *config.File {
	t.Helper()
	f, err := config.Parse(path, config.Project, []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// trustIn returns the trust in a file.
func trustIn(f *config.File) Trust {
	return Trust{Path: f.Path, SHA256: f.SHA256, Added: added, Asks: f.TrustRequests()}
}

// "Approve once, exploit forever": trust must not outlive the content that it was given
// for.
func TestTrustIsInOneContent(t *testing.T) {
	const src = "model.base_url = 'https://a.example'\n"
	f := project(t, "/p/agent.toml", src)
	trust := trustIn(f)
	if !trust.Covers(project(t, "/p/agent.toml", src)) {
		t.Error("it does not cover what was trusted")
	}
	for name, other := range map[string]string{
		"another value":      "model.base_url = 'https://b.example'\n",
		"one more setting":   src + "mounts = ['/']\n",
		"one less":           "",
		"a harmless setting": src + "max_tool_turns = 1\n",
		"a comment":          src + "#",
		"a line end":         src + "\n",
		"a byte order mark":  "\ufeff" + src,
	} {
		if trust.Covers(project(t, "/p/agent.toml", other)) {
			t.Errorf("%s: it is covered, too", name)
		}
	}
	// A later version of the program may find more requests in the same bytes.
	more := trust
	more.Asks = nil
	if more.Covers(f) {
		t.Error("what was never shown is covered")
	}
	if (Trust{}).Covers(&config.File{}) || (Trust{}).Covers(f) {
		t.Error("no trust covers something")
	}
}

func TestChangesAreSaidInWords(t *testing.T) {
	trust := trustIn(project(t, "/p/agent.toml", "model.base_url = 'https://a.example'\nmounts = ['/data']\n"))
	now := project(t, "/p/agent.toml", "model.base_url = 'https://b.example'\nsystem_prompt = \"\"\"\nBe brief.\nOr not.\"\"\"\n")
	want := []string{
		"system_prompt was not asked for", "system_prompt is: Be brief.\nOr not.",
		`mounts was: ["/data"]`, "mounts is no longer asked for",
		`model.base_url was: "https://a.example"`, `model.base_url is: "https://b.example"`,
	}
	if diff := cmp.Diff(want, trust.Changes(now.TrustRequests())); diff != "" {
		t.Error(diff)
	}
	if got := trust.Changes(trust.Asks); got != nil {
		t.Errorf("the same changed: %q", got)
	}
}

func TestTrustComesBackAsItWasGiven(t *testing.T) {
	d := Dirs{State: filepath.Join(t.TempDir(), "new")}
	path := d.trustFile()
	var want []Trust
	for i, prompt := range []string{"", "one line", "two\nlines", "\t\x1b[2K\u202e\r", `"""'''\`, "é😀", "[[trust]]\npath = '/evil'"} {
		f := project(t, fmt.Sprintf("/ws%d/a \"b'\\c/agent.toml", i), "system_prompt = "+keys.Format(prompt)+"\nmounts = ['/data:ro']\n")
		trust := trustIn(f)
		if err := d.addTrust(trust); err != nil {
			t.Fatalf("%q: %v", prompt, err)
		}
		want = append(want, trust)
		got, err := d.Trusts()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("after %q: %s", prompt, diff)
		}
		if !got[i].Covers(f) {
			t.Errorf("%q is not covered any more", prompt)
		}
	}
	for name, mode := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): fs.ModeDir | 0o700} {
		if st, err := os.Stat(name); err != nil || st.Mode() != mode {
			t.Errorf("%s: mode %v, %v; want %v", name, st.Mode(), err, mode)
		}
	}

	// Only one content is trusted at a path.
	again := want[0]
	again.SHA256 = strings.Repeat("0", 64)
	if err := d.addTrust(again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append(want[1:], again), must(d.Trusts())); diff != "" {
		t.Error(diff)
	}
	if found, err := d.Distrust(again.Path); !found || err != nil {
		t.Errorf("remove: %v, %v", found, err)
	}
	if found, err := d.Distrust(again.Path); found || err != nil {
		t.Errorf("remove once more: %v, %v", found, err)
	}
	if diff := cmp.Diff(want[1:], must(d.Trusts())); diff != "" {
		t.Error(diff)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestTrustThatIsNotUnderstoodIsRefusedAndKept(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	entry := "[[trust]]\npath = \"/a/agent.toml\"\nsha256 = \"" + sum + "\"\nadded = 2026-01-02T03:04:05Z\n"
	for name, text := range map[string]string{
		"garbage":           "\x00\xff",
		"an unknown key":    entry + "always = true\n",
		"a relative path":   strings.Replace(entry, "/a/", "a/", 1),
		"no path":           strings.Replace(entry, "/a/agent.toml", "", 1),
		"no digest":         strings.Replace(entry, sum, "", 1),
		"half a digest":     strings.Replace(entry, sum, sum[:32], 1),
		"something else":    strings.Replace(entry, sum, strings.Repeat("*", 64), 1),
		"an ask without it": entry + "[[trust.asks]]\nname = \"x\"\n",
		"too much":          entry + strings.Repeat("#", keys.MaxFileBytes),
	} {
		t.Run(name, func(t *testing.T) {
			d := Dirs{State: t.TempDir()}
			path := d.trustFile()
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := d.Trusts(); err == nil || got != nil || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, %v", got, err)
			}
			if err := d.addTrust(Trust{Path: "/b/agent.toml", SHA256: sum, Added: added}); err == nil {
				t.Error("trust was added")
			}
			if _, err := d.Distrust("/a/agent.toml"); err == nil {
				t.Error("trust was removed")
			}
			if after, _ := os.ReadFile(path); string(after) != text {
				t.Error("the file was changed")
			}
		})
	}
}
