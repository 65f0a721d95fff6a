package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/shell"

	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/redact"
)

// Each recipe of the help is loaded as it stands there, in its place below a home and an /etc of
// the test, and decides as the page says.
func TestRecipesDecideAsTheySay(t *testing.T) {
	gueststest.Need(t)
	page, err := helpPages.ReadFile("help/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	recipes := strings.Split(string(page), "\n## ")[1:]
	if len(recipes) != 6 {
		t.Errorf("there are %d recipes", len(recipes))
	}
	for _, recipe := range recipes {
		name, text, _ := strings.Cut(recipe, "\n")
		t.Run(name, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			home, work := filepath.Join(root, "home", "ada"), filepath.Join(root, "home", "ada", "src", "app")
			if err := os.MkdirAll(work, 0o700); err != nil {
				t.Fatal(err)
			}
			var file []string
			var decisions [][2]string // command and decision
			place := ""
			for line := range strings.SplitSeq(text, "\n") {
				code, isCode := strings.CutPrefix(line, "    ")
				command, decision, decides := strings.Cut(code, " # ")
				command, explains := strings.CutPrefix(command, "stockade policy explain ")
				switch {
				case isCode && explains && decides:
					decisions = append(decisions, [2]string{command, decision})
				case isCode && strings.HasPrefix(code, "# "):
					place = strings.TrimPrefix(code, "# ")
				case isCode:
					file = append(file, strings.ReplaceAll(code, "/home/", root+"/home/"))
				}
			}
			path := strings.Replace(place, "~", home, 1)
			if path == place {
				path = filepath.Join(root, place)
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(strings.Join(file, "\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			before := adminPolicyPlace
			adminPolicyPlace = func() policyfile.Place {
				return policyfile.Place{Path: filepath.Join(root, "etc/stockade/policy.toml"), Root: root, Owner: os.Getuid()}
			}
			defer func() { adminPolicyPlace = before }()
			if len(decisions) != 3 {
				t.Errorf("it says what becomes of %d calls", len(decisions))
			}
			for _, d := range decisions {
				words, err := shell.Fields(d[0], nil)
				if err != nil {
					t.Fatal(err)
				}
				var out bytes.Buffer
				env := map[string]string{"HOME": home, "PATH": os.Getenv("PATH")}
				a := &app{s: &stdio{in: os.Stdin, out: &out, err: io.Discard, env: func(k string) string { return env[k] }}, redactor: new(redact.Redactor)}
				a.flags.dir, a.flags.quiet, a.flags.json = work, true, true
				if err := a.open(t.Context()); err != nil {
					t.Fatal(err)
				}
				var got struct{ Effect string }
				if err := runPolicyExplain(t.Context(), a, "agent", words[0], words[1:]); err != nil {
					t.Errorf("%s: %v", d[0], err)
				} else if json.Unmarshal(out.Bytes(), &got) != nil || got.Effect != d[1] {
					t.Errorf("%s: %s, want %s\n%s", d[0], got.Effect, d[1], &out)
				}
				a.close()
			}
		})
	}
}
