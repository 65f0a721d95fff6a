package paths

import (
	"strings"
	"testing"
)

// sameOnAWalk checks that walking a path name by name gives the same result as the whole
// path.
func sameOnAWalk(t *testing.T, name string) {
	t.Helper()
	names := components(nil, name)
	if len(names) == 0 {
		return
	}
	d := Dir{}
	for _, c := range names[:len(names)-1] {
		d = d.Enter(c.given)
	}
	got, _ := d.Find(names[len(names)-1].given)
	change, sure := held(name, reachExact|reachInside)
	read := find2(name, reachExact|reachInside, Secret)
	if sure && (got.ReadOnly != nil) != change || (got.Secret != nil) != read {
		t.Errorf("%q: held %v and secret %v, on a walk %+v", name, change, read, got)
	}
	if all, sure := held(name, reachInside); sure && got.ReadOnlyAll != all {
		t.Errorf("%q: all held: %v, on a walk %v", name, all, got.ReadOnlyAll)
	}
	if all := find2(name, reachInside, Secret); got.SecretAll != all {
		t.Errorf("%q: all secret: %v, on a walk %v", name, all, got.SecretAll)
	}
	if leads, _ := held(name, reachAbove); d.enter(names[len(names)-1]).LeadsToReadOnly() != leads {
		t.Errorf("%q leads to what is held: %v, on a walk %v", name, leads, !leads)
	}
}

// held reports whether no command may change a path. sure is false for HEAD, which another
// entry may make read-only.
func held(name string, counts reach) (_, sure bool) {
	s, ok := find(name, counts, Closed, Asked)
	return ok, s.Pattern != headFile
}

func find2(name string, counts reach, care Care) bool {
	_, ok := find(name, counts, care)
	return ok
}

func TestAWalkFindsTheSamePaths(t *testing.T) {
	spell := []func(string) string{
		func(s string) string { return s },
		strings.ToUpper,
		func(s string) string { return s + "~" },
		func(s string) string { return s + ".bak" },
		func(s string) string { return s + "-2026-01-31" },
		func(s string) string { return s + " (1)" },
		func(s string) string { return "." + s + ".swp" },
		func(s string) string { return "#" + s + "#" },
		func(s string) string { return ".#" + s },
		func(s string) string { return s + ". " },
		func(s string) string { return s + "::$DATA" },
		func(s string) string { return s + ":x.pub" },
		func(s string) string { return s + ".pub" },
		func(s string) string { return s + ".example.old" },
		func(s string) string { return "\u200c" + s },
		func(s string) string { return strings.ReplaceAll(s, "e", "\uff45") },
		func(s string) string { return strings.ReplaceAll(s, "s", "\u017f") },
		func(s string) string { return strings.TrimLeft(s, ".")[:min(6, len(strings.TrimLeft(s, ".")))] + "~1" },
	}
	seen := map[string]bool{}
	for _, s := range specials {
		for _, stars := range []string{"", "x", "x/y/z"} {
			names := strings.Split(strings.Trim(strings.ReplaceAll(strings.ReplaceAll(s.Pattern, "**", stars), "*", "x"), "/"), "/")
			for i := range names {
				if names[i] == "" {
					continue
				}
				for _, how := range spell {
					for _, dir := range []string{"", "/ws/a.old/", "/.config/", "/.git/modules/m/"} {
						spelled := append([]string(nil), names...)
						spelled[i] = how(names[i])
						whole := dir + strings.Join(spelled, "/")
						if !seen[whole] { // a pattern without stars comes three times
							seen[whole] = true
							sameOnAWalk(t, whole)
							sameOnAWalk(t, whole+"/below")
						}
					}
				}
			}
		}
	}
}

func TestTheConfigurationOfGitIsNotHidden(t *testing.T) {
	for name, want := range map[string][2]string{
		"/ws/.git/config":             {".git/config", ""},
		"/ws/.git/modules/a/b/config": {".git/modules/**/config", ""},
		"/ws/.git/config.worktree":    {".git/config.worktree", ""},
		"/ws/.ssh/.git/config":        {".ssh/**", ".ssh/**"},
		"/ws/.env":                    {".env", ".env"},
		"/ws/.hg/hgrc":                {".hg/hgrc", ".hg/hgrc"},
	} {
		dir, last := name[:strings.LastIndexByte(name, '/')], name[strings.LastIndexByte(name, '/')+1:]
		if f, _ := DirOf(dir).Find(last); pattern(f.Secret) != want[0] || pattern(f.Hidden) != want[1] {
			t.Errorf("%s: %q and %q", name, pattern(f.Secret), pattern(f.Hidden))
		}
	}
}

func pattern(s *Special) string {
	if s == nil {
		return ""
	}
	return s.Pattern
}

func TestABareRepositoryOnAWalk(t *testing.T) {
	d := DirOf("/ws/bare")
	if f, any := d.Find("config"); any {
		t.Errorf("config of no repository: %+v", f)
	}
	d = d.Repository()
	for _, name := range []string{"config", "hooks", "HOOKS", "commondir"} {
		if f, _ := d.Find(name); f.ReadOnly == nil {
			t.Errorf("%s of a repository is not closed", name)
		}
	}
	if f, _ := d.Enter("hooks").Find("pre-commit"); !f.ReadOnlyAll {
		t.Error("what is in the hooks is not closed")
	}
}

// projectNames are names of files as in projects.
var projectNames = []string{"main.go", "README.md", "index.test.tsx", "file17.go", "package.json", "lib_util-2.c", "Makefile", "0a1b2c3d4e5f6071", "x.min.js", "z_test.py"}

func BenchmarkDir(b *testing.B) {
	d := DirOf("/home/u/project/src")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.Find(projectNames[i%len(projectNames)])
	}
}

func BenchmarkReadAndChange(b *testing.B) {
	for i := 0; b.Loop(); i++ {
		name := "/home/u/project/src/" + projectNames[i%len(projectNames)]
		SpecialForRead(name)
		SpecialForChange(name)
	}
}
