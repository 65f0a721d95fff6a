package diff

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/tool"
)

// files are those below a directory.
func files(t *testing.T, dir string) map[string]*tool.Version {
	t.Helper()
	found := map[string]*tool.Version{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		v := &tool.Version{Mode: info.Mode()}
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			v.Open, v.Size = version(data).Open, int64(len(data))
		}
		found["/ws"+strings.TrimPrefix(name, dir)] = v
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// between are the changes from some files to others, as a stage lists them.
func between(t *testing.T, before, after map[string]*tool.Version) (changes []tool.Change) {
	t.Helper()
	content := func(v *tool.Version) string {
		data, err := head(v, 1<<30)
		if v.Mode.IsRegular() && err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	kind := func(v *tool.Version, file, dir tool.ChangeKind) tool.ChangeKind {
		if v.Mode.IsDir() {
			return dir
		}
		return file
	}
	for name, was := range before {
		now := after[name]
		switch {
		case now == nil || now.Mode.Type() != was.Mode.Type():
			changes = append(changes, tool.Change{Path: name, Kind: kind(was, tool.Removed, tool.DirectoryRemoved), Before: was})
		case content(now) != content(was):
			changes = append(changes, tool.Change{Path: name, Kind: tool.Modified, Before: was, After: now})
		case now.Mode != was.Mode:
			changes = append(changes, tool.Change{Path: name, Kind: tool.ModeChanged, Before: was, After: now})
		}
	}
	for name, now := range after {
		if was := before[name]; was == nil || now.Mode.Type() != was.Mode.Type() {
			changes = append(changes, tool.Change{Path: name, Kind: kind(now, tool.Created, tool.DirectoryCreated), After: now})
		}
	}
	slices.SortFunc(changes, func(a, b tool.Change) int {
		if a.Path == b.Path {
			return strings.Compare(string(b.Kind), string(a.Kind))
		}
		return strings.Compare(a.Path, b.Path)
	})
	return changes
}

// What commands do to a repository is told in git's words, and what else they do there
// is shown.
func TestWhatGitDoes(t *testing.T) {
	hashes := regexp.MustCompile(`\b[0-9a-f]{10}\b`)
	object := regexp.MustCompile(`objects/[0-9a-f]{2}/[0-9a-f]{38}`)
	short := regexp.MustCompile(`main: [0-9a-f]{7} `)
	sizes := regexp.MustCompile(` \(\d+ bytes?(, before \d+)?\)`)
	evil := "b=$(echo evil | git hash-object -w --stdin); "
	for _, test := range []struct {
		name, before, command string
		want                  []string
	}{
		{"a commit", "", "echo 2 > a; git commit -qam two", []string{`git: 1 commit on main: "two"; index of 1 file (a)`, "modified a"}},
		{"nothing but a commit", "", "git commit -q --allow-empty -m two", []string{`git: 1 commit on main: "two"`}},
		{"of what was staged before", "echo 2 > a; git add a", "git commit -qm two", []string{`git: 1 commit on main: "two"; index`}},
		{"in a directory", "", "mkdir -p d/e; echo 2 > d/e/b; git add .; git commit -qm two", []string{`git: 1 commit on main: "two"; index of 1 file (d/e/b)`, "directory created d", "directory created d/e", "created d/e/b"}},
		{"several, on a new branch", "", "git checkout -qb x; for i in 1 2 3; do git commit -q --allow-empty -m $i; done", []string{`git: on branch x; 3 commits on x: "3"`}},
		{"a merge", "git checkout -qb x; git commit -q --allow-empty -m x; git checkout -q main; git commit -q --allow-empty -m y", "git merge -q --no-edit x", []string{`git: 1 commit on main: "Merge branch 'x'"`}},
		{"amended", "git commit -q --allow-empty -m one", "git commit -q --amend --allow-empty -m two", []string{`git: main moves from HASH to HASH, which does not follow it as far as can be told: "two"`}},
		{"rebased", "git checkout -qb x; git commit -q --allow-empty -m x; git checkout -q main; git commit -q --allow-empty -m y; git checkout -q x", "git rebase -q --keep-empty main", []string{`git: x moves from HASH to HASH, which does not follow it as far as can be told: "x"`}},
		{"with no parent", "", "git reset -q --soft $(git commit-tree -m root HEAD^{tree})", []string{`git: main moves from HASH to HASH, which does not follow it: "root"`}},
		{"with a parent that git does not see", "", `git reset -q --soft $(printf 'tree %s\nauthor a <a> 1 +0000\nparent %s\ncommitter a <a> 1 +0000\n\nroot\n' $(git rev-parse HEAD^{tree} HEAD) | git hash-object --literally -w -t commit --stdin)`, []string{`git: main moves from HASH to HASH, which does not follow it: "root"`}},
		{"on no branch", "git checkout -q --detach", "git commit -q --allow-empty -m two; git reset -q --soft $(git commit-tree -m three HEAD^{tree})", []string{`git: HEAD moves from HASH to HASH, which does not follow it: "three"`}},
		{"on no branch any more", "", "git checkout -q --detach; git commit -q --allow-empty -m two", []string{`git: 1 commit on no branch: "two"`}},
		{"of what nobody has seen", "", evil + `git update-ref HEAD $(git commit-tree -p HEAD -m two $(printf '100644 blob %s\tx y\n100644 blob %s\ta\n' $b $(git rev-parse HEAD:a) | git mktree))`, []string{`git: 1 commit on main: "two" with files that are not in the index: a, "x y"`}},
		{"of what nobody has seen, below", "", evil + `cp .git/index k; git update-index --add --cacheinfo 100644,$b,d/e/f; t=$(git write-tree); mv k .git/index; echo 2 > a; git add a; git update-ref HEAD $(git commit-tree -p HEAD -m two $t)`, []string{`git: 1 commit on main: "two" with files that are not in the index: a, d/e/f; index of 1 file (a)`, "modified a"}},
		{"of another mode", "", `cp .git/index k; git update-index --chmod=+x a; t=$(git write-tree); mv k .git/index; echo 2 > b; git add b; git update-ref HEAD $(git commit-tree -p HEAD -m two $t)`, []string{`git: 1 commit on main: "two" with files that are not in the index: a; index of 1 file (b)`, "created b"}},
		{"of many", "", `for i in $(seq 10 30); do printf '100644 blob %s\t%s\n' $(git rev-parse HEAD:a) $i; done > .git/list; git update-ref HEAD $(git commit-tree -p HEAD -m two $(git mktree < .git/list)); rm .git/list`, []string{`git: 1 commit on main: "two" with files that are not in the index: 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, ...`}},
		{"with an index that is none", "", evil + `git update-ref HEAD $(git commit-tree -p HEAD -m two $(printf '100644 blob %s\tx\n' $b | git mktree)); echo > .git/index`, []string{`git: 1 commit on main: "two" with files that cannot be compared with the index`, "git: index"}},
		{"of a stash", "git stash -q", "echo 3 > a; git stash -q", []string{`git: 1 commit on the stash: "WIP on main: ID one"; index`}},
		{"a tag, and a branch that goes", "git branch x", "git tag t; git branch -qD x; rm -f .git/packed-refs", []string{"removed .git/logs/refs/heads/x", "git: branch x removed; tag t at HASH"}},
		{"odd names and contents", "", `printf 'x\033[2K' > .git/refs/tags/t; echo $(git rev-parse HEAD) > '.git/refs/heads/a; main'; printf 'ref: refs/heads/a"b\n c' > .git/HEAD; printf 'a, b' > .git/refs/x`,
			[]string{`git: on branch "a\"b\n c"; branch "a; main" at HASH; tag t at "x\x1b[2K"; x at "a, b"`}},
		{"an empty reference is there", "", ": > .git/refs/heads/main", []string{`git: branch main moves from HASH to ""`}},
		{"a new repository", "", "git init -q -b main n", []string{"git in n: a new repository; on branch main", "directory created n", "created n/.git/config"}},
		{"an object that is another one", "", "f=$(find .git/objects -type f | sort | head -1); chmod u+w $f; echo > $f", []string{"modified .git/OBJECT (mode -rw-r--r--, before -r--r--r--)"}},
		{"an object that is none", "", "echo > .git/objects/evil; mkdir .git/objects/zz; echo > .git/objects/zz/zz; echo > .git/objects/info/alternates; echo > .git/objects/info/commit-graph", []string{"created .git/objects/evil", "created .git/objects/info/alternates", "created .git/objects/info/commit-graph", "created .git/objects/zz/zz"}},
		{"objects that are gone", "", "git update-ref -d HEAD; rm -rf .git/objects/??", []string{"removed .git/logs/refs/heads/main", "git: branch main removed; 3 objects removed"}},
		{"what is not to be seen", "", "echo '*' > .git/info/exclude; echo > .git/description; echo > .git/hooks/x.sample; echo > .git/hooks/x", []string{"created .git/hooks/x", "modified .git/info/exclude"}},
		{"what is gone", "git commit -q --amend -m two --allow-empty", "rm -rf .git/logs .git/ORIG_HEAD .git/description .git/COMMIT_EDITMSG .git/HEAD .git/info", []string{
			"removed .git/COMMIT_EDITMSG", "removed .git/HEAD", "removed .git/description", "directory removed .git/info", "removed .git/info/exclude", "directory removed .git/logs", "removed .git/logs/HEAD",
			"directory removed .git/logs/refs", "directory removed .git/logs/refs/heads", "removed .git/logs/refs/heads/main"}},
		{"links", "", "for f in index HEAD COMMIT_EDITMSG logs/HEAD refs/heads/main; do ln -sf /x .git/$f; done; ln -s /x .git/AUTO_MERGE; ln -s /x .git/objects/zz; ln -s /x .git/rebase-merge", []string{
			"removed .git/COMMIT_EDITMSG", "removed .git/HEAD", "removed .git/index", "removed .git/logs/HEAD", "git: branch main removed",
			"created .git/AUTO_MERGE (symbolic link)", "created .git/COMMIT_EDITMSG (symbolic link)", "created .git/HEAD (symbolic link)",
			"created .git/index (symbolic link)", "created .git/logs/HEAD (symbolic link)",
			"created .git/objects/zz (symbolic link)", "created .git/rebase-merge (symbolic link)", "created .git/refs/heads/main (symbolic link)"}},
		{"modes", "", "chmod 777 .git/refs; chmod 755 .git/logs/HEAD; mkdir -m 777 .git/y; mkdir .git/z; echo > .git/ORIG_HEAD; chmod 666 .git/ORIG_HEAD", []string{
			"mode .git/logs/HEAD (mode -rwxr-xr-x, before -rw-r--r--)", "created .git/ORIG_HEAD (mode -rw-rw-rw-)", "mode .git/refs (mode drwxrwxrwx, before drwxr-xr-x)", "directory created .git/y (mode drwxrwxrwx)"}},
		{"a rebase that goes on", "", "mkdir .git/rebase-merge; (echo pick 1; echo x rm -rf \\~; echo '# exec no') > .git/rebase-merge/git-rebase-todo", []string{`git: a rebase that has stopped, and would go on with "x rm -rf ~", "pick 1"`, "created .git/rebase-merge/git-rebase-todo"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run := func(command string) {
				t.Helper()
				cmd := exec.Command("sh", "-c", "umask 022; "+command)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v: %s", command, err, out)
				}
			}
			run("git init -q -b main; echo 1 > a; git add a; git commit -qm one")
			run(test.before)
			before := files(t, dir)
			run(test.command)
			changes := between(t, before, files(t, dir))
			lines := Summary(t.Context(), changes, "/ws", 100)
			for i, l := range lines {
				l = object.ReplaceAllString(hashes.ReplaceAllString(l, "HASH"), "OBJECT")
				l = short.ReplaceAllString(l, "main: ID ")
				lines[i] = sizes.ReplaceAllString(l, "")
			}
			if d := cmp.Diff(test.want, lines); d != "" {
				t.Error(d)
			}
		})
	}
}

// loose is an object as git keeps it.
func loose(kind, body string) (id string, v *tool.Version) {
	text := fmt.Sprintf("%s %d\x00%s", kind, len(body), body)
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return fmt.Sprintf("%x", sha1.Sum([]byte(text))), version(out.Bytes())
}

// What a commit holds is looked at as far as there is room, and no name leads to
// another object.
func TestOfObjects(t *testing.T) {
	var changes []tool.Change
	add := func(name string, v *tool.Version) {
		changes = append(changes, tool.Change{Path: "/ws/.git/" + name, Kind: tool.Created, After: v})
	}
	opens := 0
	object := func(kind, body string) (raw string) {
		id, v := loose(kind, body)
		open := v.Open
		v.Open = func() (io.ReadCloser, error) { opens++; return open() }
		add("objects/"+id[:2]+"/"+id[2:], v)
		fmt.Sscanf(id, "%x", &raw)
		return raw
	}
	commit := func(tree string) {
		raw := object("commit", fmt.Sprintf("tree %x\n\n%s\n", tree, strings.Repeat("x", 200)))
		add("refs/heads/x", file(fmt.Sprintf("%x\n", raw)))
	}
	check := func(name, want string) {
		t.Helper()
		if got := Summary(t.Context(), changes, "/ws", 9); len(got) != 1 || got[0] != `git: 1 commit on x: "`+strings.Repeat("x", 100)+`..."`+want {
			t.Errorf("%s: %.500q", name, got)
		}
		changes = nil
	}
	blob := strings.Repeat("b", 20)
	tree := object("tree", "100644 "+strings.Repeat("n", 200)+"\x00"+blob)
	commit(tree)
	check("a long name", " with files that are not in the index: "+strings.Repeat("n", 100)+"...")

	tree = object("tree", "")
	for range 30 { // 2^30 ways to the last one
		tree = object("tree", "40000 a\x00"+tree+"40000 b\x00"+tree)
	}
	commit(tree)
	check("trees again and again", " with files that cannot be compared with the index")
	if opens > 3000 {
		t.Errorf("%d objects are read", opens)
	}

	tree = object("tree", "100644 f\x00"+blob)
	for range 200 {
		tree = object("tree", "40000 a\x00"+tree)
	}
	commit(tree)
	check("a deep one", " with files that cannot be compared with the index")

	commit(object("tree", strings.Repeat("x", maxTree+1)))
	check("a large one", " with files that cannot be compared with the index")
	commit(object("tree", "100644 f\x00"))
	check("one cut off", " with files that cannot be compared with the index")

	_, v := loose("commit", "tree x\n\nharmless\n")
	id := strings.Repeat("a", 40)
	add("objects/"+id[:2]+"/"+id[2:], v)
	add("refs/heads/x", file(id))
	if got := Summary(t.Context(), changes, "/ws", 9); len(got) != 1 || got[0] != "git: branch x at aaaaaaaaaa" {
		t.Errorf("an object of another name: %q", got)
	}
}

func TestTheNextStepsOfARebase(t *testing.T) {
	for _, test := range []struct{ name, todo, want string }{
		{"none", "# done\n\n", "that has stopped in its last step"},
		{"few", "pick a\np b\n", `that has stopped, and would go on with "pick a", "p b"`},
		{"more than commits", "pick a\nexec rm\nfixup -C b\nb\nmerge x\n", `that has stopped, and would go on with "exec rm", "b", "merge x", "pick a", "fixup -C b"`},
		{"at the end of many", strings.Repeat("pick a\n", 99) + "x rm\n", `that has stopped, and would go on with "x rm", ` + strings.Repeat(`"pick a", `, 49) + "50 more"},
		{"too many", strings.Repeat("exec a\n", maxSteps+1), "whose next steps cannot be read here"},
		{"after what is read", strings.Repeat("# a\n", maxText/4) + "exec rm\n", "whose next steps cannot be read here"},
	} {
		if got := todo("rebase-merge", file(test.todo)).stepWords(); got != test.want {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

// Nothing is lost of what is there twice, or was moved there, or of what there is no room for.
func TestNothingInARepositoryIsLost(t *testing.T) {
	v, link := file("x"), &tool.Version{Mode: fs.ModeSymlink | 0o777, Target: "/x"}
	dir := &tool.Version{Mode: fs.ModeDir | 0o755}
	twin := file("x")
	twin.Twin = "/ws/other"
	for _, test := range []struct {
		name    string
		changes []tool.Change
		want    []string
	}{
		{"another in its place", []tool.Change{{Path: "/ws/.git/index", Kind: tool.Removed, Before: v}, {Path: "/ws/.git/index", Kind: tool.Created, After: link}},
			[]string{"removed .git/index (1 byte)", "created .git/index (symbolic link to /x)"}},
		{"in two places", []tool.Change{{Path: "/ws/.git/FETCH_HEAD", Kind: tool.Created, After: twin}}, []string{"created .git/FETCH_HEAD (the same file as other) (1 byte)"}},
		{"from elsewhere", []tool.Change{{Path: "/ws/.git/ORIG_HEAD", From: "/ws/a", Kind: tool.Renamed, Before: v, After: v}, {Path: "/ws/.git/hooks", From: "/ws/h", Kind: tool.Renamed, Before: dir, After: dir}},
			[]string{"renamed .git/ORIG_HEAD from a", "renamed .git/hooks from h"}},
		{"all of it", []tool.Change{{Path: "/ws/.git", Kind: tool.DirectoryRemoved, Before: dir}, {Path: "/ws/.git/hooks", Kind: tool.DirectoryRemoved, Before: dir}}, []string{"directory removed .git", "directory removed .git/hooks"}},
		{"a rebase that is cut off", []tool.Change{{Path: "/ws/.git/rebase-merge/git-rebase-todo", Kind: tool.Removed, Before: v}, {Path: "/ws/.git/rebase-merge/done", Kind: tool.Created, After: link}},
			[]string{"removed .git/rebase-merge/git-rebase-todo (1 byte)", "created .git/rebase-merge/done (symbolic link to /x)"}},
		{"times", []tool.Change{{Path: "/ws/.git/objects/aa/b", Kind: tool.Times, Before: v, After: v}, {Path: "/ws/.git/logs", Kind: tool.Times, Before: dir, After: dir}}, []string{"git: 2 changes of its own"}},
	} {
		got := Summary(t.Context(), test.changes, "/ws", 9)
		slices.Sort(got)
		slices.Sort(test.want)
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%s: %s", test.name, d)
		}
	}
	var many []tool.Change
	for i := range 5000 {
		many = append(many, tool.Change{Path: fmt.Sprintf("/ws/.git/refs/tags/%04d", i), Kind: tool.Removed, Before: v})
	}
	if text := Unified(t.Context(), many, "/ws"); !strings.Contains(text, "tag 0000 removed") || !strings.Contains(text, "removed 4800 files: in .git/refs/tags") || len(text) > 1<<20 {
		t.Errorf("%d bytes: %.400s", len(text), text)
	}
}

// When there is no time, that is said, and everything is named.
func TestNoTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	unread := &tool.Version{Size: 1, Mode: 0o644}
	changes := []tool.Change{
		{Path: "/ws/.git/index", Kind: tool.Modified, Before: unread, After: unread},
		{Path: "/ws/a", Kind: tool.Removed, Before: unread}, {Path: "/ws/b", Kind: tool.Created, After: unread},
	}
	want := []string{"removed a (1 byte)", "there was no time to look at all of this", "modified .git/index", "created b (1 byte)"}
	if d := cmp.Diff(want, Summary(ctx, changes, "/ws", 9)); d != "" {
		t.Error(d)
	}
	if set := New(ctx, changes, "/ws", nil); set.Whole() || !strings.HasPrefix(set.String(), strings.Join(want[:2], "\n")) {
		t.Errorf("all %t: %s", set.Whole(), set)
	}
}
