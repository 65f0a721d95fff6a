package git

import (
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/tool"
)

const projectWithIgnores = `git init -q . && printf 'dist/\n*.log\n!keep.log\n/only\n' > .gitignore && mkdir -p sub dist && printf 'here\n' > sub/.gitignore &&
	echo a > a.txt && echo t > dist/tracked && echo old > dist/old && git add -f .gitignore sub a.txt dist/tracked && git commit -qm one`

// What is ignored is told by the ignore files of the last commit, and never an executable, a
// link or a tracked file.
func TestIgnored(t *testing.T) {
	for command, want := range map[string]string{
		"echo x > dist/a; mkdir dist/b; echo x > dist/b/c": "dist dist dist",
		"rm dist/old":                                            "dist",
		"echo x > x.log; echo x > keep.log":                      "x.log",
		"mkdir -p sub/here; echo x > sub/here/x":                 "sub/here sub/here",
		"echo x > sub/only; echo x > only":                       "only",
		"echo x > Dist; mkdir DIST; echo > DIST/x":               "",
		"echo x > dist/tracked":                                  "",
		"git rm -q --cached dist/tracked; echo x > dist/tracked": "",
		"echo x > dist/a; chmod +x dist/a":                       "",
		"ln -s ../a.txt dist/a":                                  "",
		"echo x > dist/.gitignore":                               "",
		"echo x >> a.txt; echo x > new":                          "",
		// An ignore file that the change set writes does not count.
		"echo new >> .gitignore; echo x > new":                                         "",
		"echo '*' > src.gitignore; mkdir src; echo '*' > src/.gitignore; echo > src/x": "",
		"echo new > .gitignore; git add .gitignore; git commit -qm two; echo x > new":  "",
		"echo x > dist/a; git add -f dist/a":                                           "",
		"mkdir in; cd in; git init -q .; echo '*' > .gitignore; echo x > y":            "",
	} {
		var tops []string
		changes := made(t, projectWithIgnores, command, nil)
		heads := OpenHeads(changes)
		for _, c := range changes {
			top := heads.Ignored(c)
			if top == "" {
				continue
			}
			tops = append(tops, top[strings.LastIndex(top, "/ws/")+len("/ws/"):])
		}
		heads.Close()
		if slices.Sort(tops); strings.Join(tops, " ") != want {
			t.Errorf("%s: %q, want %q", command, tops, want)
		}
	}
}

// Of a directory the patterns are asked once, however many changes are below it: both may be many.
func TestIgnoredFarDown(t *testing.T) {
	const depth = 100
	dir := strings.Repeat("d/", depth)
	changes := made(t, projectWithIgnores, "mkdir -p "+dir+"; echo x > "+dir+"a; echo x > "+dir+"b; echo x > "+dir+"c.log", nil)
	heads := OpenHeads(changes)
	defer heads.Close()
	tops := 0
	for _, c := range changes {
		if heads.Ignored(c) != "" {
			tops++
		}
	}
	last := changes[len(changes)-1]
	if n := testing.AllocsPerRun(1, func() { heads.Ignored(last) }); n > 5*depth || tops != 1 {
		t.Errorf("%d paths are ignored; the last takes %v allocations", tops, n)
	}
}

// What git holds is what its last commit has, or the index after the change.
func TestHolds(t *testing.T) {
	const project = "git init -q . && echo a > a && mkdir d && echo b > d/b && ln -s a l && git add . && git commit -qm one && echo c > c && git add c && echo mine > mine && echo changed > a"
	for command, want := range map[string]bool{
		"rm d/b": true, "rm l": true, "rm c": true, "rm -r d": true, "git rm -q d/b && git commit -qm two": true, "git repack -qad; git prune-packed; rm d/b": true,
		"rm mine": false, "rm a": false, "git rm -qf c": false, "rm -r d; rm mine": false, "git update-index --force-remove c && rm c": false,
		"chmod +x d/b; rm d/b": true, "rm -f .git/objects/??/*; rm d/b": false,
	} {
		changes := made(t, project, command, nil)
		gone := slices.DeleteFunc(slices.Clone(changes), func(c tool.Change) bool { return c.Kind != tool.Removed || strings.Contains(c.Path, "/.git/") })
		heads := OpenHeads(changes)
		all := len(gone) > 0
		for _, c := range gone {
			all = all && heads.Holds(c)
		}
		heads.Close()
		if all != want {
			t.Errorf("%s: held %t of %d", command, all, len(gone))
		}
	}
}

// A place where git has no file takes no part of the bytes that may be compared.
func TestHoldsWithinALimit(t *testing.T) {
	changes := made(t, "git init -q . && echo a > a && git add . && git commit -qm one", "git rm -q a", nil)
	i := slices.IndexFunc(changes, func(c tool.Change) bool { return strings.HasSuffix(c.Path, "/ws/a") })
	heads := OpenHeads(changes)
	defer heads.Close()
	heads.files.left.files = changes[i].Before.Size
	if !heads.Holds(changes[i]) {
		t.Error("the last commit has it, and nobody has looked")
	}
}

// A reflog may only become longer.
func TestRewrittenReflogs(t *testing.T) {
	for command, want := range map[string]bool{
		"echo x > b; git add b; git commit -qm two": false, "git checkout -q -b other; git checkout -q -": false, "git branch other": false,
		"git reflog expire --expire=now --all": true, "git reflog delete HEAD@{0}": true, "rm .git/logs/HEAD": true, "rm -r .git/logs": true,
		"echo 0 > .git/logs/HEAD": true, "mv .git/logs/HEAD .git/logs/x": true,
	} {
		dirs, err := Check(t.Context(), made(t, start, command, nil))
		if err != nil || len(dirs) != 1 || dirs[0].LogsRewritten != want {
			t.Errorf("%s: %+v, %v", command, dirs, err)
		}
	}
}
