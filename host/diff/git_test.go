package diff

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/tool"
)

// files returns the files below a directory, with paths as if the directory had another name.
func files(t *testing.T, dir, as string) map[string]*tool.Version {
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
			v.Open, v.Size = file(string(data)).Open, int64(len(data))
		}
		if v.Mode&fs.ModeSymlink != 0 {
			v.Target, _ = os.Readlink(name)
		}
		found[as+strings.TrimPrefix(name, dir)] = v
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// changed returns the changes that a command makes to the files that another one has made in a
// directory. The command runs in a copy.
func changed(t *testing.T, before, command string) (dir string, changes []tool.Change) {
	t.Helper()
	top := t.TempDir()
	dir = filepath.Join(top, "ws")
	run := func(dir, command string) {
		t.Helper()
		cmd := exec.Command("sh", "-ec", "umask 022; "+command)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	run(top, "mkdir ws; cd ws; "+before)
	run(top, "cp -a ws after")
	run(filepath.Join(top, "after"), command)
	return dir, between(t, files(t, dir, dir), files(t, filepath.Join(top, "after"), dir))
}

// between returns the changes from one set of files to another, as a stage lists them.
func between(t *testing.T, before, after map[string]*tool.Version) (changes []tool.Change) {
	t.Helper()
	content := func(v *tool.Version) string {
		data, err := v.Content(1 << 30)
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
		case now.Target != was.Target:
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

// Changes of commands in a repository are described in the terms of git, and all other changes
// there are shown.
func TestWhatGitDoes(t *testing.T) {
	hashes := regexp.MustCompile(`\b[0-9a-f]{10}\b`)
	object := regexp.MustCompile(`objects/[0-9a-f]{2}/[0-9a-f]{38}`)
	short := regexp.MustCompile(`main: [0-9a-f]{7} `)
	sizes := regexp.MustCompile(` \(\d+ bytes?(, before \d+)?\)`)
	evil := "b=$(echo evil | git hash-object -w --stdin); "
	pr := "git checkout -qb pr; echo evil > a; echo evil > x; git add .; git commit -qm pr; git checkout -q main"
	for _, test := range []struct {
		name, before, command string
		want                  []string
	}{
		{"a commit", "", "echo 2 > a; git commit -qam two", []string{`git: 1 commit on main: "two"; 1 file as in the worktree (a)`, "modified a"}},
		{"nothing but a commit", "", "git commit -q --allow-empty -m two", []string{`git: 1 commit on main: "two"`}},
		{"of what was staged before", "echo 2 > a; git add a", "git commit -qm two", []string{`git: 1 commit on main: "two"; 1 file as in the worktree (a)`}},
		{"in a directory", "", "mkdir -p d/e; echo 2 > d/e/b; git add .; git commit -qm two", []string{`git: 1 commit on main: "two"; 1 file as in the worktree (d/e/b)`, "directory created d", "directory created d/e", "created d/e/b"}},
		{"several, on a new branch", "", "git checkout -qb x; for i in 1 2 3; do git commit -q --allow-empty -m $i; done", []string{`git: on branch x; 3 commits on x: "3"`}},
		{"a merge", "git checkout -qb x; git commit -q --allow-empty -m x; git checkout -q main; git commit -q --allow-empty -m y", "git merge -q --no-edit x", []string{`git: 1 commit on main: "Merge branch 'x'", with 1 commit from elsewhere`}},
		{"amended", "git commit -q --allow-empty -m one", "git commit -q --amend --allow-empty -m two", []string{`git: main moves from HASH to HASH, with 1 new commit: "two", and 1 commit lost: "one"`}},
		{"rebased", "git checkout -qb x; git commit -q --allow-empty -m x; git checkout -q main; git commit -q --allow-empty -m y; git checkout -q x", "git rebase -q --keep-empty main", []string{`git: x moves from HASH to HASH, with 1 new commit: "x", and 1 commit lost: "x"`}},
		{"with no parent", "", "git reset -q --soft $(git commit-tree -m root HEAD^{tree})", []string{`git: main moves from HASH to HASH, with 1 new commit: "root", and 1 commit lost: "one"`, "git: 1 file as in the worktree (a)"}},
		{"with a parent that git does not see", "", `git reset -q --soft $(printf 'tree %s\nauthor a <a> 1 +0000\nparent %s\ncommitter a <a> 1 +0000\n\nroot\n' $(git rev-parse HEAD^{tree} HEAD) | git hash-object --literally -w -t commit --stdin)`, []string{`git: main moves from HASH to HASH, with 1 new commit: "root", and 1 commit lost: "one"`, "git: 1 file as in the worktree (a)"}},
		{"on no branch", "git checkout -q --detach", "git commit -q --allow-empty -m two; git reset -q --soft $(git commit-tree -m three HEAD^{tree})", []string{`git: HEAD moves from HASH to HASH, with 1 new commit: "three", and no commit is lost; 1 file as in the worktree (a)`}},
		{"on no branch any more", "", "git checkout -q --detach; git commit -q --allow-empty -m two", []string{`git: 1 commit on no branch: "two"`}},
		{"of what nobody has seen", "", evil + `git update-ref HEAD $(git commit-tree -p HEAD -m two $(printf '100644 blob %s\tx y\n100644 blob %s\ta\n' $b $(git rev-parse HEAD:a) | git mktree))`, []string{`commit HASH holds "x y", which the worktree does not have`, `git: 1 commit on main: "two"`}},
		{"of what nobody has seen, below", "", evil + `cp .git/index k; git update-index --add --cacheinfo 100644,$b,d/e/f; t=$(git write-tree); mv k .git/index; echo 2 > a; git add a; git update-ref HEAD $(git commit-tree -p HEAD -m two $t)`, []string{"commit HASH holds d/e/f, which the worktree does not have", `git: 1 commit on main: "two"; 1 file as in the worktree (a)`, "modified a"}},
		{"of another mode", "", `cp .git/index k; git update-index --chmod=+x a; t=$(git write-tree); mv k .git/index; echo 2 > b; git add b; git update-ref HEAD $(git commit-tree -p HEAD -m two $t)`, []string{"commit HASH holds another version of a (mode -rwxr-xr-x, before -rw-r--r--)", `git: 1 commit on main: "two"; 1 file as in the worktree (b)`, "created b"}},
		{"of no mode that git knows", "", `git update-ref HEAD $(git commit-tree -p HEAD -m two $(printf '10644 blob %s\ta\n' $(git rev-parse HEAD:a) | git mktree))`, []string{`git: 1 commit on main: "two"; submodule a at HASH`}},
		{"of many", "", `for i in $(seq 10 30); do printf '100644 blob %s\t%s\n' $(git rev-parse HEAD:a) $i; done > .git/list; git update-ref HEAD $(git commit-tree -p HEAD -m two $(git mktree < .git/list)); rm .git/list`, []string{"commit HASH holds 10, which the worktree does not have", "commit HASH holds 11, which the worktree does not have", "commit HASH holds 12, which the worktree does not have", "commit HASH holds 13, which the worktree does not have", "commit HASH holds 14, which the worktree does not have", "commit HASH holds 15, which the worktree does not have", "commit HASH holds 16, which the worktree does not have", "commit HASH holds 17, which the worktree does not have", "commit HASH holds 18, which the worktree does not have", "commit HASH holds 19, which the worktree does not have", "commit HASH holds 20, which the worktree does not have", "commit HASH holds 21, which the worktree does not have", "commit HASH holds 22, which the worktree does not have", "commit HASH holds 23, which the worktree does not have", "commit HASH holds 24, which the worktree does not have", "commit HASH holds 25, which the worktree does not have", "commit HASH holds 26, which the worktree does not have", "commit HASH holds 27, which the worktree does not have", "commit HASH holds 28, which the worktree does not have", "commit HASH holds 29, which the worktree does not have", "commit HASH holds 30, which the worktree does not have", `git: 1 commit on main: "two"; 1 file removed from git, but not from the worktree (a)`}},
		{"with an index that is none", "", evil + `git update-ref HEAD $(git commit-tree -p HEAD -m two $(printf '100644 blob %s\tx\n' $b | git mktree)); echo > .git/index`, []string{"commit HASH holds x, which the worktree does not have", "git: not all of what commits and the index hold could be looked at", `git: 1 commit on main: "two"; 1 file removed from git, but not from the worktree (a)`}},
		{"of a stash", "git stash -q", "echo 3 > a; git stash -q", []string{"commit HASH holds another version of a", `git: stashed "WIP on main: ID one"`}},
		{"a file among many that the worktree does not have", "", evil + "for i in $(seq 10 25); do echo 2 > f$i; done; git add .; git update-index --add --cacheinfo 100755,$b,zz.sh; git commit -qm Tidy", []string{"commit HASH holds zz.sh (mode -rwxr-xr-x), which the worktree does not have", `git: 1 commit on main: "Tidy"; 16 files as in the worktree (f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, 4 more)`, "created 16 files in ."}},
		{"staged in part", "", "printf '1\\n2\\n' > a; git add a; echo 3 >> a", []string{"the index holds another version of a", "git: 1 new object", "modified a"}},
		{"staged with other ends of lines", "", "git config core.autocrlf input; printf '1\\r\\n' > c; git add c; git config --unset core.autocrlf", []string{"git: 1 file as in the worktree (c); 1 of these with LF where the worktree has CRLF", "created c"}},
		{"taken out of the index", "", "git rm -q --cached a", []string{"git: 1 file removed from git, but not from the worktree (a)"}},
		{"back", "for i in 1 2 3; do git commit -q --allow-empty -m $i; done", "git reset -q --hard HEAD~3", []string{`git: main moves from HASH to HASH, and 3 commits lost: "3", "2", "1"`}},
		{"back, where another branch has it", "for i in 1 2 3; do git commit -q --allow-empty -m $i; done; git branch x", "git reset -q --hard HEAD~3", []string{"git: main moves from HASH to HASH, and no commit is lost"}},
		{"a branch that goes with commits", "git checkout -qb x; git commit -q --allow-empty -m x; git checkout -q main", "git branch -qD x", []string{`git: branch x removed, and 1 commit lost: "x"`, "git: the log of branch x removed, with 2 lines"}},
		{"a branch packed, and moved there", "git branch x; git commit -q --allow-empty -m y; git pack-refs --all", "sed -i 's/^[0-9a-f]* refs.heads.x/'$(git rev-parse main)' refs\\/heads\\/x/' .git/packed-refs", []string{"git: branch x moves from HASH to HASH, which follows it, with 1 commit from elsewhere"}},
		{"a merge of what nobody has seen", pr, "git update-ref refs/heads/main $(git commit-tree -p main -p pr -m Tidy pr^{tree})", []string{"commit HASH holds another version of a", "commit HASH holds x, which the worktree does not have", `git: 1 commit on main: "Tidy", with 1 commit from elsewhere`}},
		{"on top of what nobody has seen", pr, "git update-ref refs/heads/main $(git commit-tree -p pr -m Tidy pr^{tree})", []string{"commit HASH holds another version of a", "commit HASH holds x, which the worktree does not have", `git: 1 commit on main: "Tidy", with 1 commit from elsewhere`}},
		{"a branch at what nobody has seen", pr, "git update-ref refs/heads/main pr", []string{"commit HASH holds another version of a", "commit HASH holds x, which the worktree does not have", "git: branch main moves from HASH to HASH, which follows it, with 1 commit from elsewhere"}},
		{"HEAD at what nobody has seen", pr, "git symbolic-ref HEAD refs/heads/pr", []string{"commit HASH holds another version of a", "commit HASH holds x, which the worktree does not have", "git: on branch pr"}},
		{"another branch checked out", pr, "git checkout -q pr", []string{"git: on branch pr; 2 files as in the worktree (a, x)", "modified a", "created x"}},
		{"back to what it has grown from", "echo 2 > a; git commit -qam two; git branch x", "git reset -q --soft HEAD~1", []string{"git: main moves from HASH to HASH, and no commit is lost"}},
		{"a commit whose name was there before", "h=$(printf '100644 blob %s\tx\n' $(git rev-parse HEAD:a) | git mktree); h=$(git commit-tree -p HEAD -m two $h); echo $h > ../h; mv .git/objects/$(echo $h | sed 's,..,&/,') ../o; git pack-refs --all; echo $(git rev-parse HEAD) refs/heads/x/$h >> .git/packed-refs", "h=$(cat ../h); mkdir -p .git/objects/$(echo $h | cut -c1-2); cp ../o .git/objects/$(echo $h | sed 's,..,&/,'); git update-ref refs/heads/main $h; git pack-refs --all; git read-tree HEAD^", []string{"commit HASH holds x, which the worktree does not have", `git: 1 commit on main: "two"; 1 file removed from git, but not from the worktree (a)`}},
		{"two lines of packed-refs for one reference", "git commit -q --allow-empty -m two; git pack-refs --all", "(head -1 .git/packed-refs; for i in HEAD^ HEAD^ HEAD; do echo $(git rev-parse $i) refs/heads/main; done) > p; mv p .git/packed-refs", []string{"git: not all of what commits and the index hold could be looked at"}},
		{"a long HEAD", "git branch x", "printf 'ref: refs/heads/x\n%5000s' ' ' > .git/HEAD", []string{"git: on branch x"}},
		{"a HEAD that is too long", "git branch x", "printf 'ref: refs/heads/x\n%99999s' ' ' > .git/HEAD", []string{"git: not all of what commits and the index hold could be looked at", "git: HEAD at ?, on no branch"}},
		{"a reference with more behind its id", "git commit -q --allow-empty -m two; git branch x", "echo $(git rev-parse HEAD^) and more > .git/refs/tags/t; printf \"$(git rev-parse HEAD^)\\n%5000s\" ' ' > .git/refs/heads/main", []string{"git: main moves from HASH to HASH, and no commit is lost; tag t at HASH"}},
		{"an empty reference in front of a packed one", "git pack-refs --all", ": > .git/refs/heads/main", []string{`git: main moves from HASH to ?, and 1 commit lost: "one"`}},
		{"commits that no reference of git keeps", "for i in 1 2; do git commit -q --allow-empty -m $i; done", "mkdir -p .git/worktrees/zz; for f in refs/heads/keep.lock refs/heads/.k worktrees/zz/HEAD; do git rev-parse HEAD > .git/$f; done; git reset -q --hard HEAD~1", []string{`git: main moves from HASH to HASH, and 1 commit lost: "2"`, "git: branch .k at HASH; branch keep.lock at HASH", "created .git/worktrees/zz/HEAD"}},
		{"files taken out of another branch", "git checkout -qb x; mkdir d; echo > d/f; echo > g; git add .; git commit -qm x; git checkout -q main", "git update-ref refs/heads/x $(git commit-tree -p x -m Tidy main^{tree})", []string{`git: 1 commit on x: "Tidy"; 2 files removed from git, and not in the worktree (d/f, g)`}},
		{"a file taken out, and removed", "echo > b; git add b; git commit -qm b", "git rm -q b; git commit -qm two", []string{"removed b", `git: 1 commit on main: "two"`}},
		{"a file taken out of the index that is not in the worktree", "echo > b; git add b; git commit -qm b; git update-index --skip-worktree b; rm b", "git update-index --force-remove b", []string{"git: 1 file removed from git, and not in the worktree (b)"}},
		{"a new file that git does not look at", "", "echo > b; git add b; git update-index --skip-worktree b", []string{"git: 1 file as in the worktree (b); git is told whether to look at 1 file (b)", "created b"}},
		{"a file of the index that is only to be added", "", "git rm -q --cached a; git add -N a", []string{"git: 1 file removed from git, but not from the worktree (a)"}},
		{"as in a worktree of another branch", "git worktree add -q ../wt 2> /dev/null; mv ../wt .; echo \"$PWD/wt/.git\" > .git/worktrees/wt/gitdir", "(export GIT_DIR=$PWD/.git/worktrees/wt; cd wt; echo evil > a; git --work-tree=. add a); git update-ref refs/heads/main $(git commit-tree -p main -m Tidy $(GIT_DIR=.git/worktrees/wt git write-tree))", []string{"commit HASH holds another version of a", `git: 1 commit on main: "Tidy"; worktree wt: 1 file as in the worktree (a)`, "modified wt/a"}},
		{"a reference of another worktree", "git worktree add -q ../wt 2> /dev/null; mv ../wt .", "mkdir -p .git/worktrees/wt/refs/worktree; git rev-parse HEAD > .git/worktrees/wt/refs/worktree/x", []string{"git: worktree wt: worktree/x at HASH"}},
		{"a tag of a tree", pr, "git tag t pr^{tree}", []string{"commit HASH holds another version of a", "commit HASH holds x, which the worktree does not have", "git: tag t at HASH"}},
		{"a tag of a file", "", "git tag -m t t HEAD:a", []string{"git: not all of what commits and the index hold could be looked at", "git: tag t at HASH"}},
		{"a message that names what is not there", "", "i=1234567890123456789012345678901234567890; git commit -q --allow-empty -m \"pick $i\" -m \"(cherry picked from commit $i)\"", []string{`git: 1 commit on main: "pick 1234567890123456789012345678901234567890"`}},
		{"a pack that is gone", "git gc -q", "rm -f .git/objects/pack/*.pack", []string{"git: 3 objects lost"}},
		{"packed-refs that is not in order", "git commit -q --allow-empty -m two; git pack-refs --all", "(echo '# pack-refs with: peeled fully-peeled sorted'; for i in x main; do echo $(git rev-parse HEAD) refs/heads/$i; done) > p; mv p .git/packed-refs", []string{"git: not all of what commits and the index hold could be looked at", "git: branch x at HASH"}},
		{"HEAD through another reference", pr + "; git update-ref refs/pull/1 main; git symbolic-ref HEAD refs/pull/1", "git update-ref refs/pull/1 pr", []string{"commit HASH holds another version of a", "commit HASH holds x, which the worktree does not have", "git: pull/1 moves from HASH to HASH, which follows it"}},
		{"a commit on no branch that is left", "git checkout -q --detach; git commit -q --allow-empty -m two", "git checkout -q main", []string{`git: on branch main, and 1 commit lost: "two"`}},
		{"references packed", "git branch x; git tag t", "git pack-refs --all", []string{"git: 4 changes of its own"}},
		{"stashes dropped", "for i in 1 2 3; do echo $i$i > a; git stash -qm s$i; done", "git stash drop -q stash@{1}", []string{`git: stashes dropped: "On main: s2"`}},
		{"all stashes dropped", "for i in 1 2 3; do echo $i$i > a; git stash -qm s$i; done", "git stash clear", []string{`git: stashes dropped: "On main: s1", "On main: s2", "On main: s3"`}},
		{"stashes dropped among much else", "echo 11 > a; git stash -qm s; git tag u", "git branch y; git tag t; git tag -d u; git stash clear", []string{`git: stashes dropped: "On main: s"`, "git: tag u removed", "git: branch y at HASH; tag t at HASH"}},
		{"a packed replacement among many references", "", "h=$(git rev-parse HEAD); (for i in $(seq 10 60); do echo $h refs/heads/$i; done; echo $h refs/replace/x) > .git/packed-refs", []string{"git: 2 more references moved or removed", "git: replace/x at HASH; branch 10 at HASH; branch 11 at HASH; branch 12 at HASH; branch 13 at HASH; branch 14 at HASH; branch 15 at HASH; branch 16 at HASH; branch 17 at HASH; branch 18 at HASH; branch 19 at HASH; branch 20 at HASH; branch 21 at HASH; branch 22 at HASH; branch 23 at HASH; branch 24 at HASH; branch 25 at HASH; branch 26 at HASH; branch 27 at HASH; branch 28 at HASH; branch 29 at HASH; branch 30 at HASH; branch 31 at HASH; branch 32 at HASH; branch 33 at HASH; branch 34 at HASH; branch 35 at HASH; branch 36 at HASH; branch 37 at HASH; branch 38 at HASH; branch 39 at HASH; branch 40 at HASH; branch 41 at HASH; branch 42 at HASH; branch 43 at HASH; branch 44 at HASH; branch 45 at HASH; branch 46 at HASH; branch 47 at HASH; branch 48 at HASH; branch 49 at HASH; branch 50 at HASH; branch 51 at HASH; branch 52 at HASH; branch 53 at HASH; branch 54 at HASH; branch 55 at HASH; branch 56 at HASH; branch 57 at HASH; branch 58 at HASH"}},
		{"a log that loses lines", "for i in 1 2 3; do git commit -q --allow-empty -m $i; done", "git reflog expire --expire=now --all", []string{"git: the log of HEAD loses 4 lines; the log of branch main loses 4 lines"}},
		{"a commit that was made before and nobody was told of", "h=$(git commit-tree -p HEAD -m two $(printf '100644 blob %s\\tx\\n' $(git rev-parse HEAD:a) | git mktree)); echo $h > ../h", "git update-ref HEAD $(cat ../h); git read-tree HEAD^", []string{"commit HASH holds x, which the worktree does not have", `git: 1 commit on main: "two"; 1 file removed from git, but not from the worktree (a)`}},
		{"a commit that only a log names", evil + "echo $(git commit-tree -p HEAD -m two $(printf '100644 blob %s\\tx\\n' $b | git mktree)) > ../h", "echo $(git rev-parse HEAD) $(cat ../h) 'a <a> 1 +0000\ttwo' >> .git/logs/HEAD", []string{"commit HASH holds x, which the worktree does not have", "git: 1 file removed from git, but not from the worktree (a)"}},
		{"packed anew", "git commit -q --allow-empty -m y", "git tag t; git gc -q --prune=now; rm -f .git/info/refs .git/objects/info/* .git/objects/pack/*.rev .git/objects/pack/*.bitmap", []string{"git: tag t at HASH"}},
		{"in another worktree", "git worktree add -q ../wt 2> /dev/null; mv ../wt .; echo \"$PWD/wt/.git\" > .git/worktrees/wt/gitdir", "export GIT_DIR=$PWD/.git/worktrees/wt; cd wt; echo 2 > a; git --work-tree=. commit -qam wt", []string{`git: 1 commit on wt: "wt"; worktree wt: 1 file as in the worktree (a)`, "modified wt/a"}},
		{"a submodule", evil, "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),m", []string{"git: submodule m at HASH"}},
		{"not to be looked at", "", "git update-index --assume-unchanged a", []string{"git: git is told whether to look at 1 file (a)"}},
		{"with SHA-256", "rm -rf .git; git init -q -b main --object-format=sha256; git add a; git commit -qm one", "b=$(echo evil | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$b,x; git commit -qm two", []string{"commit HASH holds x, which the worktree does not have", `git: 1 commit on main: "two"`}},
		{"a tag, and a branch that goes", "git branch x", "git tag t; git branch -qD x; rm -f .git/packed-refs", []string{"git: branch x removed", "git: the log of branch x removed, with 1 line; tag t at HASH"}},
		{"odd names and contents", "", `printf 'x\033[2K' > .git/refs/tags/t; echo $(git rev-parse HEAD) > '.git/refs/heads/a; main'; printf 'ref: refs/heads/a"b\n c' > .git/HEAD; printf 'a, b' > .git/refs/x`,
			[]string{`git: on branch "a\"b\n c"; branch "a; main" at HASH; tag t at "x\x1b[2K"; x at "a, b"`}},
		{"an empty reference is there", "", ": > .git/refs/heads/main", []string{`git: main moves from HASH to ?, and 1 commit lost: "one"`}},
		{"a new repository", "", "git init -q -b main n", []string{"git in n: a new repository; on branch main", "directory created n", "created n/.git/config"}},
		{"an object that is none", "", "echo > .git/objects/evil; mkdir .git/objects/zz; echo > .git/objects/zz/zz; echo > .git/objects/info/alternates; echo > .git/objects/info/commit-graph", []string{"created .git/objects/evil", "created .git/objects/info/alternates", "created .git/objects/info/commit-graph", "created .git/objects/zz/zz"}},
		{"objects that are gone", "", "git update-ref -d HEAD; rm -rf .git/objects/??", []string{"git: 3 objects lost", `git: branch main removed, and 1 commit lost: "one"`, "git: the log of branch main removed, with 1 line"}},
		{"what is not to be seen", "", "echo '*' > .git/info/exclude; echo > .git/description; echo > .git/hooks/x.sample; echo > .git/hooks/x", []string{"created .git/hooks/x", "modified .git/info/exclude"}},
		{"what is gone", "git commit -q --amend -m two --allow-empty", "rm -rf .git/logs .git/ORIG_HEAD .git/description .git/COMMIT_EDITMSG .git/HEAD .git/info", []string{"removed .git/COMMIT_EDITMSG", "removed .git/HEAD", "removed .git/description", "directory removed .git/info", "removed .git/info/exclude", "directory removed .git/logs", "directory removed .git/logs/refs", "directory removed .git/logs/refs/heads", "git: the log of HEAD removed, with 2 lines; the log of branch main removed, with 2 lines"}},
		{"links", "", "for f in index HEAD COMMIT_EDITMSG logs/HEAD refs/heads/main; do ln -sf /x .git/$f; done; ln -s /x .git/AUTO_MERGE; ln -s /x .git/rebase-merge", []string{"removed .git/COMMIT_EDITMSG", "removed .git/HEAD", "removed .git/index", "git: not all of what commits and the index hold could be looked at", `git: main moves from HASH to ?, and 1 commit lost: "one"`, "git: the log of HEAD removed, with 1 line; HEAD at ?, on no branch", "created .git/AUTO_MERGE (symbolic link to /x)", "created .git/COMMIT_EDITMSG (symbolic link to /x)", "created .git/HEAD (symbolic link to /x)", "created .git/index (symbolic link to /x)", "created .git/logs/HEAD (symbolic link to /x)", "created .git/rebase-merge (symbolic link to /x)", "created .git/refs/heads/main (symbolic link to /x)"}},
		{"modes", "", "chmod 777 .git/refs; chmod 755 .git/logs/HEAD; mkdir -m 777 .git/y; mkdir .git/z; echo > .git/ORIG_HEAD; chmod 666 .git/ORIG_HEAD", []string{
			"mode .git/logs/HEAD (mode -rwxr-xr-x, before -rw-r--r--)", "created .git/ORIG_HEAD (mode -rw-rw-rw-)", "mode .git/refs (mode drwxrwxrwx, before drwxr-xr-x)", "directory created .git/y (mode drwxrwxrwx)"}},
		{"scripts where git keeps its own", "", "for f in logs/run objects/pack/run.sh FETCH_HEAD AUTO_MERGE ORIG_HEAD; do echo 'touch evil' > .git/$f; done; echo > .git/COMMIT_EDITMSG; chmod 755 .git/COMMIT_EDITMSG; echo > .git/objects/pack/pack-x.keep",
			[]string{"modified .git/COMMIT_EDITMSG (mode -rwxr-xr-x, before -rw-r--r--)", "created .git/AUTO_MERGE", "created .git/FETCH_HEAD", "created .git/ORIG_HEAD", "created .git/logs/run", "created .git/objects/pack/pack-x.keep", "created .git/objects/pack/run.sh"}},
		{"files of its own as git writes these", "", "h=$(git rev-parse HEAD); echo $h > .git/ORIG_HEAD; echo $h > .git/AUTO_MERGE; printf '%s\\t\\tbranch x of y\\n%s\\tnot-for-merge\\ttag z\\n' $h $h > .git/FETCH_HEAD", []string{"git: 3 changes of its own"}},
		{"a log in another order", "for i in 1 2; do git commit -q --allow-empty -m $i; done", "tac .git/logs/HEAD > .git/l; mv .git/l .git/logs/HEAD", []string{"modified .git/logs/HEAD"}},
		{"a log with something else in it", "", "echo 'touch evil' >> .git/logs/HEAD", []string{"modified .git/logs/HEAD"}},
		{"a rebase that goes on", "", "mkdir .git/rebase-merge; (echo pick 1; echo x rm -rf \\~; echo '# exec no') > .git/rebase-merge/git-rebase-todo", []string{`git: a rebase that has stopped, and would go on with "x rm -rf ~", "pick 1"`, "created .git/rebase-merge/git-rebase-todo"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir, changes := changed(t, "git init -q -b main; echo 1 > a; git add a; git commit -qm one; "+test.before, test.command)
			dirs, err := git.Check(t.Context(), changes)
			if err != nil {
				t.Fatal(err)
			}
			lines := Summary(t.Context(), changes, dir, 100, dirs...)
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

func TestTheNextStepsOfARebase(t *testing.T) {
	for _, test := range []struct{ name, todo, want string }{
		{"none", "# done\n\n", "that has stopped in its last step"},
		{"few", "pick a\np b\n", `that has stopped, and would go on with "pick a", "p b"`},
		{"more than commits", "pick a\nexec rm\nfixup -C b\nb\nmerge x\n", `that has stopped, and would go on with "exec rm", "b", "merge x", "pick a", "fixup -C b"`},
		{"at the end of many", strings.Repeat("pick a\n", 99) + "x rm\n", `that has stopped, and would go on with "x rm", ` + strings.Repeat(`"pick a", `, 49) + "50 more"},
		{"too many", strings.Repeat("exec a\n", maxSteps+1), "whose next steps cannot be read here"},
		{"after what is read", strings.Repeat("# a\n", maxText/4) + "exec rm\n", "whose next steps cannot be read here"},
	} {
		if got, _ := (&Set{}).fact(fact{parts: nextSteps(file(test.todo))}, false); got != " "+test.want {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

// Changes are listed completely if a file appears twice, was moved, or has no room.
func TestNothingInARepositoryIsLost(t *testing.T) {
	v, link := file("x"), &tool.Version{Mode: fs.ModeSymlink | 0o777, Target: "/x"}
	dir := &tool.Version{Mode: fs.ModeDir | 0o755}
	twin := file("x")
	twin.HardLink = "/ws/other"
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
		{"times", []tool.Change{{Path: "/ws/.git/objects/aa/b", Kind: tool.TimesChanged, Before: v, After: v}, {Path: "/ws/.git/logs", Kind: tool.TimesChanged, Before: dir, After: dir}}, []string{"git: 2 changes of its own"}},
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
	if text := New(t.Context(), many, "/ws", nil).String(); !strings.Contains(text, "removed 5000 files: in .git/refs/tags") || len(text) > 1<<20 {
		t.Errorf("%d bytes: %.400s", len(text), text)
	}
}

// If the time runs out, a line reports it, and everything is listed.
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
	if set := New(ctx, changes, "/ws", nil); set.ShowsAll() || !strings.HasPrefix(set.String(), strings.Join(want[:2], "\n")) {
		t.Errorf("all %t: %s", set.ShowsAll(), set)
	}
}
