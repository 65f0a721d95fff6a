package gitconfig

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var configs = map[string]bool{
	"": true,
	"# x\n; y\n[core]\n\tbare = false\n[Core]\n\tFileMode=true\n":                                                   true,
	"[remote \"origin\"]\n\turl = git@example.org:x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*":             true,
	"[branch \"a.b/c\"]\n\tremote = origin\n\tmerge = refs/heads/a.b/c\n[user]\n\tname = Ada Łovelace\n\temail=a@b": true,
	"[core]\r\n\tbare = false\r\n":            false,
	"[core]\n\tfsmonitor = x\n":               false,
	"[core]\n\thooksPath = x\n":               false,
	"[core] fsmonitor = x\n":                  false,
	"[core]\n\tbare = a\\\nfsmonitor = x\n":   false,
	"[user]\n\tname = a\\\n":                  false,
	"[core]\n\tbare = \"a\nfsmonitor = x\n":   false,
	"[core]\n\tbare\n":                        false,
	"[include]\n\tpath = x\n":                 false,
	"[includeIf \"gitdir:/\"]\n\tpath = x\n":  false,
	"[remote \"o\"]\n\turl = ext::sh -c x\n":  false,
	"[remote \"o\"]\n\turl = -x\n":            false,
	"[remote \"o\"]\n\tuploadpack = x\n":      false,
	"[branch \"o\"]\n\tremote = ext::sh\n":    false,
	"[remote.o]\n\turl = x\n":                 false,
	"[remote \"a\\\"b\"]\n\turl = x\n":        false,
	"[remote]\n\turl = x\n":                   false,
	"[core \"x\"]\n\tbare = true\n":           false,
	"bare = true\n":                           false,
	"[filter \"x\"]\n\tclean = x\n":           false,
	"[alias]\n\tst = !x\n":                    false,
	"[extensions]\n\tworktreeConfig = true\n": false,
	"[core]\n\tworktree = /\n":                false,
	"\ufeff[core]\n\tbare = true\n":           false,
	"[core]\n\tbare = true # \x00\n":          false,
	"[core \"]\n\tbare = true\n":              false,
	"[]\n":                                    false,
}

func TestHarmlessConfigurations(t *testing.T) {
	for text, want := range configs {
		if err := Harmless(text); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

var harmless = regexp.MustCompile(`(?s)^(core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|symlinks|precomposeunicode)|remote\..*\.(url|fetch)|branch\..*\.(remote|merge)|submodule\.active|user\.(name|email)|init\.defaultbranch)\n`)

// A configuration that Harmless accepts has the same keys for git itself.
func FuzzHarmlessConfig(f *testing.F) {
	for text := range configs {
		f.Add(text)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		if Harmless(text) != nil {
			return
		}
		file := filepath.Join(dir, "config")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("git", "config", "--file", file, "--includes", "--null", "--list").Output()
		if err != nil {
			return // git refuses it
		}
		for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			if entry != "" && (!harmless.MatchString(entry) || strings.Contains(entry, "\next::")) {
				t.Errorf("%q has %q", text, entry)
			}
		}
	})
}
