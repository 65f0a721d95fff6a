package jail

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/stage"
)

var everyday = flag.Bool("everyday", false, "run all everyday commands, which takes minutes")

// everydayCommand runs in an empty directory, plainly and in the jail. Both have to print the
// same and end with the same code. On a stage, where setup has run before, both have to leave
// the same files, too.
type everydayCommand struct {
	name    string
	setup   string // it says nothing, and has to succeed
	command string
	want    string // a regular expression for standard output
	code    int
	quick   bool // it runs without -everyday, too
	// differs is why the jail does something else than what is plain; then only that
	// is looked at, and want is also for standard error.
	differs string
	fails1  string // why it fails without a root of its own
	staged  string // why it does something else on a stage: the help page has its name
}

const (
	noSockets = "no socket can be made where there is no network of its own"

	repo     = "git init -q -b main . && echo one > a.txt && mkdir -p src/lib && seq 20 > src/lib/n.txt && echo 'int x;' > src/x.c && git add . && git commit -qm one"
	identity = "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b GIT_AUTHOR_DATE=2001-02-03T04:05:06Z GIT_COMMITTER_DATE=2001-02-03T04:05:06Z; "
	branched = repo + " && git checkout -qb b && echo b > b.txt && git rm -q src/x.c && git add . && git commit -qm b && git checkout -q main && echo c > c.txt && echo 21 >> src/lib/n.txt && git add . && git commit -qm c"
	conflict = repo + " && git checkout -qb b && echo b > a.txt && git commit -qam b && git checkout -q main && echo c > a.txt && git commit -qam c"
	history  = repo + " && for i in 1 2 3 4; do echo $i > n; git add .; git commit -qm $i; done"
	module   = "printf 'module example.com/p\\n\\ngo 1.20\\n' > go.mod && printf 'package main\\n\\nimport \"fmt\"\\n\\nfunc Two() int { return 2 }\\n\\nfunc main() { fmt.Println(\"two is\", Two()) }\\n' > main.go && " +
		"printf 'package main\\n\\nimport \"testing\"\\n\\nfunc TestTwo(t *testing.T) {\\n\\tif Two() != 2 {\\n\\t\\tt.Fail()\\n\\t}\\n}\\n' > main_test.go"
	crate      = "cargo init -q --vcs none --name p ."
	wheel      = "mkdir -p w/d-1.dist-info && echo 'print(\"imported\")' > w/d.py && printf 'Metadata-Version: 2.1\\nName: d\\nVersion: 1\\n' > w/d-1.dist-info/METADATA && printf 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n' > w/d-1.dist-info/WHEEL && printf 'd.py,,\\nd-1.dist-info/METADATA,,\\nd-1.dist-info/WHEEL,,\\nd-1.dist-info/RECORD,,\\n' > w/d-1.dist-info/RECORD && find w -exec touch -d @1000000000 {} + && (cd w && python3 -m zipfile -c ../d-1-py3-none-any.whl d.py d-1.dist-info)"
	pip        = "v/bin/python -m pip "
	packageD   = "mkdir d && echo '{\"name\":\"d\",\"version\":\"1.0.0\",\"bin\":\"d.js\"}' > d/package.json && printf '#!/usr/bin/env node\\nconsole.log(\"bin ran\")\\n' > d/d.js"
	planted    = "mkdir -p d/e empty && echo f > d/f && echo g > g && echo hhhh > d/e/h && ln -s d/f l && chmod 750 d/e && chmod 640 g && touch -d @1000000000 d/f"
	cmakeLists = "printf 'cmake_minimum_required(VERSION 3.10)\\nproject(p C)\\nadd_executable(a a.c)\\nenable_testing()\\nadd_test(NAME a COMMAND a)\\n' > CMakeLists.txt"
	c          = "printf '#include <stdio.h>\\nint main(void) { puts(\"hello\"); return 0; }\\n' > a.c"
)

var everydayCommands = []everydayCommand{
	{name: "git init, status", command: "git init -q -b main . && echo x > f && git status --short && git status | head -1", want: `\?\? f\nOn branch main`},
	{name: "git commit", quick: true, setup: repo, command: "git log --format='%an %s' && git show --stat --format= HEAD", want: "A one"},
	{name: "git commit --amend", setup: repo, command: "echo two > a.txt && git commit -qa --amend -m two && git log --oneline", want: "two"},
	{name: "git branch, checkout, merge", quick: true, setup: repo, command: "git checkout -qb b && echo b > b.txt && git add . && git commit -qm b && git checkout -q main && git merge --no-edit -q --no-ff b && git log --format=%s && git branch -d b", want: "Merge branch 'b'"},
	{name: "git checkout there and back", setup: branched, command: "git checkout -q b && ls . src && git checkout -q - && ls . src && git status --short", want: "b.txt\n(?s:.*)c.txt"},
	{name: "git checkout of many files", setup: repo + " && git checkout -qb b && mkdir -p many/{1..10} && for d in {1..10}; do for f in {1..10}; do echo $d $f > many/$d/$f; done; done && git add . && git commit -qm b && git checkout -q main", command: "git checkout -q b && git rm -rq many/3 && git commit -qm 3 && git checkout -q main && git merge -q b && git ls-files | wc -l", want: "93"},
	{name: "git switch, branch -m, -c, -D", setup: branched, command: "git switch -qc new && git branch -m new newer && git branch -c b copied && git branch -D b && git branch", want: "\\* newer"},
	{name: "git merge of what is ahead, --squash", setup: branched, command: "git checkout -q b && git merge -q --squash main && git commit -qm squashed && git checkout -qb x main~1 && git merge -q main && git log --format=%s", want: "c\none"},
	{name: "git merge with a conflict", setup: conflict, command: "git merge b; c=$?; cat a.txt; git merge --abort; exit $c", want: "(?s)CONFLICT.*<<<<<<<", code: 1},
	{name: "git merge that stops", setup: conflict, command: "git merge b; git status --short", want: "UU a.txt"},
	{name: "git merge --continue", setup: conflict + " && ! git merge -q b", command: "echo both > a.txt && git add a.txt && GIT_EDITOR=true git merge --continue && git log --oneline | wc -l", want: "4"},
	{name: "git rebase", quick: true, setup: branched, command: "git rebase -q main b && git log --format=%s && ls", want: "b\nc\none"},
	{name: "git rebase that stops", setup: conflict, command: "git rebase -q main b; git status --short", want: "UU a.txt"},
	{name: "git rebase --continue", setup: conflict + " && ! git rebase -q main b", command: "echo both > a.txt && git add a.txt && GIT_EDITOR=true git rebase --continue && git log --format=%s", want: "b\nc\none"},
	{name: "git rebase --abort", setup: conflict + " && ! git rebase -q main b", command: "git rebase --abort && git status --short && git branch && cat a.txt", want: "\\* b\n  main\nb"},
	{name: "git rebase -i", setup: history, command: "GIT_SEQUENCE_EDITOR=\"sed -i '2s/pick/fixup/'\" git rebase -qi HEAD~2 && git log --format=%s", want: "3\n2\n1\none"},
	{name: "git cherry-pick, revert", setup: branched, command: "git cherry-pick b >/dev/null && git revert --no-edit HEAD~1 >/dev/null && git log --format=%s && ls", want: "Revert \"c\"\nb\nc"},
	{name: "git cherry-pick that stops", setup: history + " && git checkout -qb b HEAD~4 && echo 0 > n && git add . && git commit -qm 0", command: "git cherry-pick main~2 main~1 main; git status --short; git cherry-pick --skip; git cherry-pick --abort; git log --format=%s", want: "U+ n(?s:.*)0\none"},
	{name: "git stash", quick: true, setup: repo, command: "echo x >> a.txt && git stash -q && cat a.txt && git stash pop -q && git diff", want: "(?s)one.*\\+x"},
	{name: "git stash pop, apply, list", setup: repo + " && echo x >> a.txt && git stash -q && echo y > new && git stash -qu", command: "git stash list && git stash pop -q && git stash apply -q && git stash drop -q; git status --short", want: " M a.txt\n\\?\\? new"},
	{name: "git diff, apply", setup: repo + " && echo x >> a.txt && git mv src/x.c src/y.c && git diff HEAD > p && git reset -q --hard", command: "git apply p && git status --short && git diff --stat", want: "1 insertion"},
	{name: "git format-patch, am", setup: branched, command: "git format-patch -q -1 -o p b >/dev/null && git am -q p/*.patch && rm -r p && git log --format=%s && ls", want: "b\nc\none"},
	{name: "git add -p, commit -a", setup: repo + " && seq 0 21 > src/lib/n.txt", command: "printf 's\\ny\\nn\\n' | git add -p >/dev/null && git commit -qm part && git commit -qam rest && git log -p --format=%s -2 | grep '^[+-]'", want: "\\+21"},
	{name: "git worktree", setup: branched, command: "git worktree add -q w b && git -C w log --format=%s && git -C w rm -q b.txt && git -C w commit -qm w && git worktree list | wc -l && ls w", want: "one\n2\na.txt"},
	{name: "git worktree remove, prune", setup: branched + " && git worktree add -q w b && git worktree add -q v -b v && rm -r v", command: "git worktree remove w && git worktree prune && git branch", want: "main", staged: "what leads to a repository is closed"},
	{name: "git sparse-checkout", setup: repo + " && mkdir t && echo t > t/t && git add . && git commit -qm t", command: "git sparse-checkout set src && ls && git sparse-checkout disable && ls", want: "src\na.txt\nsrc\nt"},
	{name: "git tag, describe", setup: repo, command: "git tag -a v1 -m v1 && git describe && git tag -n", want: "v1"},
	{name: "git clone of a path", setup: "mkdir o && cd o && " + repo, command: "git clone -q o n && git -C n log --format=%s", want: "one", staged: "git looks whether a file and a link to it have one inode"},
	{name: "git clone, push, fetch", setup: "mkdir o && cd o && " + repo, command: "git clone -q --no-hardlinks o n && git clone -q --no-hardlinks --bare o b.git && git clone -q file://$PWD/b.git u && git -C n push -q ../b.git main:x && git -C u fetch -q && git -C u branch -a && git -C n log --format=%s", want: "remotes/origin/x"},
	{name: "git pull", setup: "mkdir o && (cd o && " + branched + ") && git clone -q --no-hardlinks o n && git -C o mv src source && git -C o commit -qm mv", command: "cd n && git pull -q && ls && git log --format=%s -1 && echo n > n && git add n && git commit -qm n && git -C ../o commit -q --allow-empty -m o && git pull -q --rebase && git log --format=%s", want: "source\nmv\nn\no\nmv"},
	{name: "git remote, config", setup: repo, command: "git remote add origin https://example.com/x && git config core.editor true && git remote -v && git config core.editor", want: "true"},
	{name: "git remote rename, set-url, remove", setup: repo + " && git remote add origin https://example.com/x && git remote add other https://example.com/y", command: "git remote rename origin upstream && git remote set-url upstream https://example.com/z && git remote remove other && git remote -v", want: "upstream\thttps://example.com/z"},
	{name: "git config of a branch", setup: repo + " && git remote add origin https://example.com/x", command: "git config branch.main.remote origin && git config branch.main.merge refs/heads/main && git config --get-regexp 'branch.*' && git config --unset branch.main.merge && git config --remove-section branch.main", want: "branch.main.merge refs/heads/main"},
	{name: "git fetch without a network", quick: true, command: "git init -q . && git fetch -q https://example.com/x", want: "Could not resolve host|unable to access", code: 128, differs: "there is no network"},
	{name: "git gc, fsck", setup: history, command: "git gc -q && git fsck && git count-objects -v | grep in-pack && ls .git/objects", want: "in-pack: 19", staged: "the commit-graph is left out"},
	{name: "git repack, prune, pack-refs", setup: branched + " && git repack -dq && git branch -D b && git tag v1", command: "git reflog expire --expire=now --all && git repack -adq && git prune --expire=now && git pack-refs --all && git fsck && git count-objects -v | grep -e count -e packs", want: "count: 0\npacks: 1"},
	{name: "git mv, rm", setup: repo, command: "mkdir d && git mv a.txt d/b.txt && git commit -qm mv && git mv d e && git commit -qm mv && git rm -q e/b.txt && git status --short", want: "D  e/b.txt"},
	{name: "git mv of an old directory", setup: repo, command: "git mv src source && git commit -qm mv && git mv source/lib lib && git commit -qm again && git log --follow --format=%s source/x.c && find lib source", want: "mv\none\nlib\nlib/n.txt"},
	{name: "git rm -r, and back", setup: repo, command: "git rm -rq src && git status --short && git checkout -q HEAD src && rm -r src && git checkout -q . && git status --short && cat src/x.c", want: "D  src/lib/n.txt\nD  src/x.c\nint x;"},
	{name: "git submodule of a path", setup: "mkdir o && (cd o && " + repo + ") && git init -q n", command: "cd n && git -c protocol.file.allow=always submodule add -q ../o s && git submodule status", want: "s \\(heads/main\\)", staged: "it is a clone of a path"},
	{name: "git submodule", setup: "mkdir o && (cd o && " + repo + ") && git init -q n", command: "cd n && git -c protocol.file.allow=always submodule add -q file://$PWD/../o s && git commit -qm s && git submodule status && git submodule deinit -q s && git -c protocol.file.allow=always submodule update -q --init && ls s", want: "s \\(heads/main\\)\na.txt"},
	{name: "git hooks", setup: repo + " && printf '#!/bin/sh\\necho hook ran | tee ran\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit", command: "echo x > b && git add . && git commit -qm x 2>&1 && cat ran", want: "hook ran\nhook ran"},
	{name: "git hooks that are new", setup: repo, command: "printf '#!/bin/sh\\necho hook ran\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && echo x > b && git add . && git commit -qm x 2>&1", want: "hook ran", staged: "hooks are closed"},
	{name: "git bisect", setup: history, command: "git bisect start HEAD HEAD~3 >/dev/null && git bisect run sh -c 'test $(cat n) -lt 3' | grep -o 'first bad'", want: "first bad"},
	{name: "git archive, bundle", setup: repo, command: "git archive HEAD | tar t && git bundle create -q b HEAD && git ls-remote b | wc -l", want: "a.txt\n(?s:.*)1"},
	{name: "git clean, reset, restore", setup: repo + " && mkdir -p new/dir && touch new/x new/dir/y", command: "echo y > a.txt && git clean -fdq && git restore a.txt && git rm -q src/x.c && git reset -q --hard && git status --short && cat a.txt && ls", want: "one\na.txt\nsrc"},
	{name: "git reset, reflog, tag -d", setup: history + " && git tag v1", command: "git reset -q --hard HEAD~2 && cat n && git reset -q --hard 'HEAD@{1}' && cat n && git reset -q --soft HEAD~1 && git status --short && git tag -d v1 >/dev/null && git update-ref refs/heads/x HEAD && git notes add -m note && git reflog | wc -l", want: "2\n4\nM  n"},
	{name: "git grep, blame", setup: repo, command: "git grep one && git blame -s a.txt | cut -d')' -f2", want: "a.txt:one\n one"},

	{name: "go build, run", setup: module, command: "go build -o p . && ./p && go run .", want: "two is 2\ntwo is 2"},
	{name: "go build after a change", setup: module + " && go build -o p .", command: "sed -i s/two/zwei/ main.go && go vet . && gofmt -l . && go build -o p . && ./p && go clean && ls", want: "zwei is 2\ngo.mod\nmain.go"},
	{name: "go mod vendor, edit, work", setup: module + " && mkdir d && cd d && go mod init -modfile=go.mod example.com/d 2>/dev/null; printf 'module example.com/d\\n\\ngo 1.20\\n' > go.mod && printf 'package d\\n\\nconst D = 4\\n' > d.go", command: "go mod edit -require example.com/d@v0.0.0 -replace example.com/d=./d && sed -i 's|import \"fmt\"|import (\"example.com/d\"; \"fmt\")|; s|Two()) }|Two() + d.D) }|' main.go && gofmt -w main.go && go mod vendor && go run . && cat vendor/modules.txt && rm -r vendor && go mod edit -dropreplace example.com/d && go work init . ./d && go run .", want: "is 6\n(?s:.*)is 6"},
	{name: "go test -coverprofile", setup: module, command: "go test -coverprofile c.out ./... | cut -f1,2 && go tool cover -func c.out | tail -1 && go test -c -o t . && ./t", want: "total:.*50.0%\nPASS"},
	{name: "go test, vet", setup: module, command: "go vet ./... && go test ./... | cut -f1,2 && go test ./... | grep -c cached", want: "ok *\texample.com/p\n1"},
	{name: "go test -race", setup: module + " && go test -race -c -o /dev/null .", command: "go test -race ./... | cut -f1,2", want: "ok *\texample.com/p"},
	{name: "go fmt, mod tidy, generate, list", setup: module, command: "printf 'package main\\n\\n//go:generate echo generated\\nvar X  = 1\\n' > x.go && go fmt ./... && go mod tidy && go generate ./... && go list ./... && go env GOPROXY >/dev/null", want: "x.go\ngenerated\nexample.com/p"},
	{name: "go get without a network", quick: true, setup: module, command: "go get example.com/nothing", want: "GOPROXY=off", code: 1, differs: "there is no network"},

	{name: "npm init, run", command: "npm init -y >/dev/null && npm pkg set scripts.hello='echo hello $npm_package_name' name=p && npm run -s hello && npm test; npm ls", want: "hello p", code: 0},
	{name: "npm install of a directory", setup: packageD + " && npm init -y", command: "npm install --silent ./d >/dev/null && npm ci --silent >/dev/null && npx d && npm ls --parseable | wc -l", want: "bin ran\n2"},
	{name: "npm ci, run, uninstall", setup: packageD + " && npm init -y && npm pkg set scripts.build='mkdir dist && echo built > dist/out' && npm install --silent ./d", command: "npm ci --silent >/dev/null && npm run -s build && cat dist/out && npm uninstall --silent d >/dev/null; ls node_modules; cat package.json", want: "built"},
	{name: "npm version", setup: repo + " && npm init -y && npm pkg set name=p && git add . && git commit -qm p", command: "npm version patch && git log --format=%s && git tag", want: "v1.0.1\n1.0.1\np\none\nv1.0.1"},
	{name: "npm pack, install of a tarball", setup: packageD + " && npm init -y", command: "(cd d && npm pack --silent) && npm install --silent ./d/d-1.0.0.tgz && ls node_modules", want: "d", fails1: "npm packs into its cache, which can only be read"},
	{name: "npm install without a network", command: "npm init -y >/dev/null && npm install is-odd-that-nobody-has", want: "ENOTCACHED", code: 1, differs: "there is no network"},
	{name: "node", command: "node -e 'console.log([1, 2].map(x => x * 2).join())' && node -e 'const {Worker} = require(\"worker_threads\"); new Worker(\"console.log(5)\", {eval: true})' && node -e 'console.log(require(\"child_process\").execSync(\"echo child\").toString().trim())'", want: "2,4\n5\nchild"},
	{name: "node files", command: "node -e 'const fs = require(\"fs\"); fs.mkdirSync(\"a/b\", {recursive: true}); fs.writeFileSync(\"a/b/c\", \"x\"); fs.renameSync(\"a\", \"d\"); fs.cpSync(\"d\", \"e\", {recursive: true}); console.log(fs.readFileSync(\"e/b/c\", \"utf8\")); fs.rmSync(\"d\", {recursive: true})' && ls", want: "x\ne"},
	{name: "node files that were there", quick: true, setup: planted, command: "node -e 'const fs = require(\"fs\"); fs.renameSync(\"d\", \"n\"); fs.cpSync(\"n\", \"m\", {recursive: true}); fs.appendFileSync(\"n/f\", \"more\"); fs.writeFileSync(\"g.tmp\", \"saved\"); fs.renameSync(\"g.tmp\", \"g\"); fs.truncateSync(\"n/e/h\", 1); fs.unlinkSync(\"l\"); fs.symlinkSync(\"n\", \"l\"); fs.copyFileSync(\"g\", \"m/f\"); fs.rmSync(\"empty\", {recursive: true}); fs.chmodSync(\"m/f\", 0o600)' && find . | sort && cat l/f g", want: "saved"},
	{name: "node test", command: "echo 'require(\"node:test\")(\"adds\", () => require(\"assert\").equal(1 + 1, 2))' > a.test.js && node --test | grep -c '^# pass 1\\|pass 1'", want: "1"},
	{name: "node on a local port", command: "node -e 'const s = require(\"http\").createServer((q, r) => r.end(\"served\")).listen(0, \"127.0.0.1\", () => require(\"http\").get({port: s.address().port, host: \"127.0.0.1\"}, r => r.on(\"data\", d => { console.log(d.toString()); s.close() })))'", want: "served", fails1: noSockets},

	{name: "cargo new, build, test, run", command: "cargo new -q p --vcs none && cd p && cargo build -q && cargo test -q 2>&1 | grep -c 'test result: ok' && cargo run -q", want: "Hello, world!"},
	{name: "cargo build after a change, clean", setup: crate + " && cargo build -q", command: "sed -i s/Hello/Goodbye/ src/main.rs && cargo build -q && target/debug/p && cargo build -q --release && cargo clean -q && ls", want: "Goodbye, world!\nCargo.lock"},
	{name: "cargo with a dependency", command: "cargo new -q --lib d --vcs none && cargo new -q p --vcs none && cd p && cargo add -q --path ../d && cargo build -q && grep -c 'name = \"d\"' Cargo.lock && cargo tree | wc -l", want: "1\n2"},
	{name: "cargo check, fmt, clippy", setup: crate, command: "cargo check -q && cargo fmt --check && cargo clippy -q && echo fine", want: "fine"},
	{name: "cargo add without a network", setup: crate, command: "cargo add serde-that-nobody-has", want: "(?i)offline|network|registry", code: 101, differs: "there is no network"},
	{name: "rustc", command: "echo 'fn main() { println!(\"hello\") }' > a.rs && rustc a.rs && ./a", want: "hello"},

	{name: "python3", command: "python3 -c 'import json, ssl, sqlite3, zlib, ctypes; print(json.dumps({\"a\": 1}))'", want: `{"a": 1}`},
	{name: "python3 processes and threads", command: "python3 -c '\nimport subprocess, threading, concurrent.futures as f\nprint(subprocess.run([\"echo\", \"child\"], capture_output=True, text=True).stdout.strip())\nt = threading.Thread(target=print, args=(\"thread\",)); t.start(); t.join()\nwith f.ThreadPoolExecutor(4) as e: print(sum(e.map(abs, range(-3, 3))))\n'", want: "child\nthread\n9"},
	{name: "python3 multiprocessing", command: "printf 'import multiprocessing as m\\ndef f(x): return x * x\\nif __name__ == \"__main__\":\\n    with m.Pool(2) as p: print(p.map(f, range(4)))\\n    q = m.Queue(); q.put(1); print(q.get())\\n    print(m.Lock() is not None)\\n' > a.py && python3 a.py", want: `\[0, 1, 4, 9\]`, fails1: "named semaphores and shared memory are files of /dev/shm"},
	{name: "python3 asyncio", command: "python3 -c '\nimport asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec(\"echo\", \"child\", stdout=asyncio.subprocess.PIPE)\n    print((await p.communicate())[0].decode().strip())\n    s = await asyncio.start_server(lambda r, w: w.close(), \"127.0.0.1\", 0)\n    r, w = await asyncio.open_connection(*s.sockets[0].getsockname())\n    print(await r.read())\nasyncio.run(f())\n'", want: "child\nb''", fails1: noSockets},
	{name: "python3 unittest", command: "printf 'import unittest\\nclass T(unittest.TestCase):\\n    def test(self): self.assertEqual(1, 1)\\n' > test_a.py && python3 -m unittest 2>&1 | tail -1", want: "OK"},
	{name: "python3 tempfile", command: "python3 -c 'import tempfile, os; f = tempfile.NamedTemporaryFile(); f.write(b\"x\"); f.flush(); print(os.path.getsize(f.name)); print(os.path.isdir(tempfile.mkdtemp()))'", want: "1\nTrue"},
	{name: "python3 os.rename of a directory", quick: true, setup: planted, command: "python3 -c 'import os; os.rename(\"d\", \"n\"); os.mkdir(\"d\"); os.rename(\"n/e\", \"d/e\"); os.replace(\"n/f\", \"g\"); os.renames(\"d/e/h\", \"x/y/z\")' && find . | sort && cat g", want: "./x/y/z\nf"},
	{name: "python3 shutil", setup: planted, command: "python3 -c 'import shutil, os; shutil.move(\"d\", \"n\"); shutil.copytree(\"n\", \"m\", symlinks=True); shutil.rmtree(\"n\"); shutil.copy2(\"g\", \"m/e\"); shutil.make_archive(os.environ[\"TMPDIR\"] + \"/a\", \"tar\", \"m\"); shutil.unpack_archive(os.environ[\"TMPDIR\"] + \"/a.tar\", \"u\")' && find . | sort", want: "./u/e/h"},
	{name: "python3 mmap", setup: "seq 5000 > f", command: "python3 -c '\nimport mmap, os\nf = open(\"f\", \"r+b\")\nm = mmap.mmap(f.fileno(), 0)\nm[0:1] = b\"X\"; m[9000:9004] = b\"YYYY\"; m.flush(); print(f.read(1)); m.close()\nn = mmap.mmap(os.open(\"n\", os.O_RDWR | os.O_CREAT), 4096) if os.truncate(\"f\", 20000) else None\n' && md5sum < f", want: "b'X'"},
	{name: "python3 O_TMPFILE, renameat2, fallocate", setup: planted, command: "python3 -c '\nimport ctypes, os\nt = os.open(\"d\", os.O_TMPFILE | os.O_RDWR, 0o640); os.write(t, b\"temp\")\nc = ctypes.CDLL(None, use_errno=True)\nprint(c.linkat(-100, b\"/proc/self/fd/%d\" % t, -100, b\"d/t\", 0x400))\nfor a, b, flags in [(b\"d\", b\"empty\", 2), (b\"g\", b\"empty/f\", 2), (b\"g\", b\"empty/f\", 1)]:\n    print(c.renameat2(-100, a, -100, b, flags), ctypes.get_errno())\nos.posix_fallocate(os.open(\"g\", os.O_RDWR), 0, 5000)\n' && find . | sort", want: "0\n0 0\n0 0\n-1 17\n(?s:.*)./empty/t"},
	{name: "python3 atomic saves", setup: planted, command: "python3 -c '\nimport json, os, tempfile\nfor i in range(50):\n    with tempfile.NamedTemporaryFile(\"w\", dir=\"d\", delete=False) as f: json.dump({\"i\": i}, f); f.flush(); os.fsync(f.fileno())\n    os.replace(f.name, \"d/f\")\nos.fsync(os.open(\"d\", os.O_RDONLY))\n' && cat d/f && ls d", want: "\"i\": 49"},
	{name: "python3 extended attributes", setup: "echo x > f", command: "python3 -c 'import os; os.setxattr(\"f\", \"user.a\", b\"b\"); print(os.listxattr(\"f\")); open(\"g\", \"w\"); os.setxattr(\"g\", \"user.a\", b\"b\")'", want: "user.a", staged: "neither they nor ACLs are kept"},
	{name: "python3 -m compileall", setup: "mkdir p && echo 'print(1)' > p/__init__.py && echo 'x = 2' > p/m.py && python3 -m compileall -q p && echo 'x = 3' > p/m.py && touch -d @1000000000 p/m.py", command: "python3 -m compileall -q p && python3 -c 'from p import m; print(m.x)'", want: "1\n3"},
	{name: "python3 sqlite3", setup: "python3 -c 'import sqlite3; c = sqlite3.connect(\"a.db\"); c.execute(\"create table t(x)\"); c.executemany(\"insert into t values(?)\", ((i,) for i in range(1000))); c.commit()'", command: "python3 -c 'import sqlite3; c = sqlite3.connect(\"a.db\"); c.execute(\"delete from t where x > 500\"); c.rollback(); c.execute(\"update t set x = x + 1\"); c.commit(); c.execute(\"vacuum\"); print(c.execute(\"select sum(x) from t\").fetchone())' && ls", want: "500500"},
	{name: "python3 -m venv", command: "python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'", want: "True"},
	{name: "pip install and uninstall of a wheel", setup: wheel + " && python3 -m venv --without-pip --system-site-packages v && " + pip + "install -q --no-index ./d-1-py3-none-any.whl", command: "v/bin/python -c 'import d' && " + pip + "uninstall -qy d && " + pip + "list --format=freeze | grep -c d== ; " + pip + "install -q --no-index ./d-1-py3-none-any.whl && v/bin/python -c 'import d'", want: "imported\n0\nimported"},
	{name: "pip install without a network", command: "python3 -m venv --without-pip --system-site-packages v && " + pip + "install nothing-of-that-name", want: "NewConnectionError|No matching distribution", code: 1, differs: "there is no network"},

	{name: "make", quick: true, command: "printf 'all: a b\\na b:\\n\\t@echo $@ > $@; echo made $@\\n' > Makefile && make -s && make -j2 -s && make -n", want: "made a\nmade b"},
	{name: "make after a change, clean", setup: c + " && printf 'a: a.o l.o\\n\\t$(CC) -o $@ $^\\nclean:\\n\\trm -f a *.o\\n' > Makefile && echo 'int two(void) { return 2; }' > l.c && make -s && touch -d @1000000000 a.c l.c a.o l.o a", command: "make && sed -i s/hello/changed/ a.c && make && ./a && make -q && make -s clean && ls && make -sj4", want: "up to date"},
	{name: "gcc", quick: true, setup: c, command: "gcc -O2 -Wall -o a a.c && ./a", want: "hello"},
	{name: "gcc with a library", setup: c, command: "echo 'int two(void) { return 2; }' > l.c && gcc -shared -fPIC -o libl.so l.c && printf 'int two(void); int main(void) { return two(); }' > m.c && gcc m.c -L. -ll -Wl,-rpath,$PWD -pthread -lm && ./a.out; echo $?; ar rc l.a l.c && ldd a.out | grep -c libl", want: "2\n1"},
	{name: "g++", command: "printf '#include <iostream>\\n#include <thread>\\nint main() { std::thread([] { std::cout << \"thread\\\\n\"; }).join(); }\\n' > a.cc && g++ -std=c++17 -pthread a.cc && ./a.out", want: "thread"},
	{name: "gcc -fsanitize=address", setup: c, command: "gcc -g -fsanitize=address,undefined -o a a.c && ASAN_OPTIONS=detect_leaks=0 ./a || exit 1", code: 1, want: "failed to allocate", differs: "data is limited, and it reserves terabytes"},
	{name: "cmake", setup: c + " && " + cmakeLists, command: "cmake -G Ninja -B b >/dev/null && cmake --build b >/dev/null && b/a && (cd b && ctest | grep -c '100% tests passed')", want: "hello\n1"},
	{name: "cmake after a change", setup: c + " && " + cmakeLists + " && cmake -B b && cmake --build b", command: "sed -i s/hello/changed/ a.c && cmake --build b | grep -c Building && b/a && cmake --build b --target clean && ls b", want: "1\nchanged"},
	{name: "java", command: "printf 'class A { public static void main(String[] a) { System.out.println(\"hello\"); } }' > A.java && javac A.java && java A", want: "hello"},
	{name: "javac, jar", setup: "mkdir -p src/p out && printf 'package p; public class A { public static void main(String[] a) { System.out.println(new B().x); } }' > src/p/A.java && printf 'package p; class B { int x = 1; }' > src/p/B.java && javac -d out src/p/*.java", command: "sed -i s/1/2/ src/p/B.java && javac -d out src/p/*.java && jar --create --date=2001-02-03T04:05:06Z --file a.jar -C out . && java -cp a.jar p.A", want: "2"},

	{name: "tar, gzip, xz", quick: true, command: "mkdir d && echo x > d/f && ln -s f d/l && tar czf a.tgz --mtime=@0 d && tar cJf a.txz --mtime=@0 d && rm -r d && tar xzf a.tgz && tar tf a.txz && cat d/l && gzip -c d/f | gunzip", want: "d/l"},
	{name: "tar over what was there", setup: planted + " && tar cf a.tar --mtime=@1000000000 d g l && echo changed > d/f && rm -r d/e l && echo file > d/e && mkdir l && gzip -k g", command: "rm d/e && tar xf a.tar && tar rf a.tar --mtime=@1000000000 g && gunzip -f g.gz && gzip d/f && find . | sort && zcat d/f.gz", want: "./g\n./l\nf"},
	{name: "zip, unzip", command: "echo x > f && touch -d @1000000000 f && zip -Xq a.zip f && rm f && unzip -q a.zip && cat f && unzip -l a.zip | tail -1", want: "x\n.*1 file"},
	{name: "unzip over what was there", setup: planted + " && touch -d @1000000000 g && zip -Xqr a.zip g d/f && echo changed > d/f", command: "unzip -qo a.zip && cat d/f && zip -Xqd a.zip g && unzip -l a.zip | tail -1", want: "f\n.*1 file"},
	{name: "sqlite3", command: "sqlite3 a.db 'create table t(x); insert into t values(1), (2); select sum(x) from t;' && sqlite3 a.db 'pragma journal_mode=wal; insert into t values(3); select count(*) from t'", want: "3\nwal\n3"},
	{name: "sqlite3 of a base that was there", quick: true, setup: "sqlite3 a.db 'create table t(x); insert into t select value from generate_series(1, 5000)' && sqlite3 w.db 'pragma journal_mode=wal; create table t(x)'", command: "sqlite3 a.db 'begin; delete from t where x % 2; rollback; update t set x = 0 where x < 10; select sum(x) from t' && sqlite3 w.db 'insert into t values(3); select count(*) from t' && ls", want: "12502455\n1\na.db\nw.db\n$"},
	{name: "find, xargs, grep, sed, awk, sort", command: "for i in 3 1 2; do echo line $i > f$i.txt; done; find . -name '*.txt' -print0 | sort -z | xargs -0 grep -h line | sed 's/line/l/' | awk '{ s += $2; print } END { print s }' | sort -r | uniq -c && find . -name \"f2*\" -type f -delete -print | wc -l && grep -rn line . | cut -d: -f3", want: "1 l 3"},
	{name: "sed -i, perl -pi, sort -o", quick: true, setup: planted + " && seq 50 > n", command: "sed -i 's/f/changed/' d/f l && sed -i.bak 1d n && perl -pi -e 's/h/j/g' d/e/h && sort -rno n n && echo new | tee -a g n >/dev/null && cat d/f d/e/h && ls -l | awk 'NR > 1 { print $1, $NF }'", want: "changed\njjjj"},
	{name: "find -delete, -exec", setup: planted + " && touch d/e/{1..30}.o", command: "find . -name '*.o' -delete && find d -type f -exec sh -c 'echo x >> $1; mv $1 $1.x' _ {} \\; && find . -type d -empty -print -delete && find . | sort", want: "./empty\n"},
	{name: "a hundred writers", setup: "mkdir d && for i in {1..100}; do echo $i > d/$i; done", command: "for i in {1..100}; do (echo more >> d/$i; mv d/$i d/$i.txt; echo $i >> all) & done; wait; sort -n all | tail -1; sort -no all all; ls d | wc -l", want: "100\n100"},
	{name: "diff, patch", command: "printf 'a\\nb\\n' > x && printf 'a\\nc\\n' > y && diff -u --label x --label y x y > p; patch -s x p && cmp x y && diff -r x y && echo same", want: "same"},
	{name: "patch of a tree", quick: true, setup: planted + " && cp -a d old && echo more >> d/f && rm d/e/h && echo new > d/new && ! git diff --no-index old d > p && rm -r d && mv old d", command: "patch -sp2 -d d < p && find d | sort && cat d/f && patch -sRp2 -d d < p && find d | sort", want: "d/new\nf\nmore\nd\n"},
	{name: "jq", command: "echo '{\"a\": [1, 2]}' | jq -c '.a | map(. + 1)'", want: `\[2,3\]`},
	{name: "curl without a network", quick: true, command: "curl -sS https://example.com", want: "Could not resolve host", code: 6, differs: "there is no network"},
	{name: "curl of the local port", command: "echo served > f; python3 -m http.server 8731 >/dev/null 2>&1 & for i in $(seq 50); do curl -sf http://127.0.0.1:8731/f && break; sleep 0.1; done; kill $!", want: "served", fails1: noSockets},
	{name: "wc, du, stat, head, tail, tr, tee", command: "printf 'a b\\nc\\n' > f && wc -lw f && du -b f && stat -c '%s %a' f && head -1 f | tr a-z A-Z | tee g && tail -1 f && seq 3 | paste -sd+ && basename $PWD/f && cut -c1 f | md5sum", want: "2 3 f"},
	{name: "mktemp", command: "f=$(mktemp) && d=$(mktemp -d) && echo x > $f && cp $f $d/y && cat $d/y && rm -r $f $d", want: "x"},
	{name: "a file of /tmp", command: "echo x > /tmp/everyday-$$ && cat /tmp/everyday-$$ && rm /tmp/everyday-$$", want: "x", fails1: "the system's /tmp is not the command's, whose TMPDIR names another"},
	{name: "ln, cp -a, mv, chmod, touch, install", quick: true, command: "mkdir d && echo x > d/f && ln d/f d/h && ln -s f d/l && cp -a d e && mv e g && chmod 750 g/f && touch -d @0 g/h && install -m 755 d/f i && ls -l --time-style=+%s g | awk 'NR > 1 { print $1, $2, $NF }' && readlink g/l && test d/f -ef d/h && echo same", want: "same"},
	{name: "mv of directories that were there", quick: true, setup: planted, command: "mv d n && mv -T n empty && mkdir d && mv empty d && mv g d/empty/f && mv -n d/empty/f d/empty/e/h && find . | sort && cat d/empty/f", want: "./d/empty/f\n./l\ng"},
	{name: "rm -r and again", setup: planted, command: "rm -r d && mkdir d && echo new > d/f && rmdir empty && mkdir -p empty/e && rm g && echo g > g && rm l && ln -s d/f l && find . | sort && cat l", want: "new"},
	{name: "files, directories and links for each other", quick: true, setup: planted, command: "rm g && mkdir g && echo x > g/x && rm -r d/e && echo file > d/e && rm l && echo l > l && rmdir empty && ln -s d empty && cat empty/e", want: "file"},
	{name: "links that were there", setup: planted + " && ln d/e/h h && ln -s e d/s", command: "stat -c %h h && ln g g2 && ln -sfn empty l && ln -sf g d/f && mv l d && rm d/s h && cp -P d/l k && cp -a d n && readlink d/l k n/f && rm d/e/h", want: "2\nempty\nempty\ng"},
	{name: "mv of a file that has two names", setup: "echo x > f && ln f g", command: "mv f h && test h -ef g && cat g", want: "x", staged: "the other name stays with what was there"},
	{name: "cp -al", setup: planted, command: "cp -al d a && ls -l a/f | cut -d' ' -f2 && rm a/f && echo other > a/f && cat d/f && ls a", want: "2\nf\ne\nf"},
	{name: "test -ef of a new link", setup: "echo x > f", command: "ln f g && test f -ef g && echo same", want: "same", staged: "a file has another inode when it is linked or written to"},
	{name: "writing to a file that has two names", setup: "echo x > f && ln f g", command: "echo more >> f && cat g", want: "x\nmore", staged: "the other name stays with what was there"},
	{name: "reading from what is written to meanwhile", quick: true, setup: "echo x > f", command: "exec 3<f && echo more >> f && cat <&3", want: "x\nmore"},
	{name: "mmap before a file is written to", setup: "echo x > f", command: "python3 -c 'import mmap; r = open(\"f\"); m = mmap.mmap(r.fileno(), 0, prot=mmap.PROT_READ); f = open(\"f\", \"r+\"); f.write(\"y\"); f.flush(); print(m[:1])'", want: "b'y'", staged: "a mapping shows the file as it was"},
	{name: "chmod, umask, modes", quick: true, setup: planted, command: "chmod -R go-rwx d && chmod 000 g && chmod +x d/f && (umask 077; echo x > x; mkdir y) && chmod 555 empty && find . -printf '%m %p\\n' | sort", want: "0 ./g"},
	{name: "cp -p, touch, install -D, mkdir -m", setup: planted, command: "cp -p d/f n && touch -d @1100000000 g && touch -hd @1000000000 l && install -Dm 700 g x/y/g && mkdir -m 700 z && cp -r d z && cp g d/f && find . -printf '%m %p\\n' | sort && stat -c %Y n g l", want: "1000000000\n1100000000\n1000000000"},
	{name: "truncate, fallocate, dd of what was there", setup: "seq 5000 > f && cp f g && cp f h", command: "truncate -s 100 f && truncate -s +5000 g && dd if=/dev/zero of=h bs=1 seek=4090 count=10 conv=notrunc status=none && fallocate -l 30000 h && cat f g h | md5sum && : > g && stat -c %s f g h", want: "100\n0\n30000"},
	{name: "a sparse file", setup: "truncate -s 3M f", command: "echo x | dd of=f bs=1 seek=1000000 conv=notrunc status=none && cp --sparse=always f g && cmp f g && stat -c %s g", want: "3145728"},
	{name: "strange names", setup: "mkdir $'new\\nline' 'a b' && echo x > 'a b/ü ö' && echo y > $'new\\nline/-f' && touch -- -r", command: "mv $'new\\nline' $'tab\\t' && mv 'a b/ü ö' $'\\xff' && rm -- -r && touch '*' \"$(printf 'n%.0s' {1..255})\" && ls | wc -lc", want: "5 +2[0-9]+"},
	{name: "a FIFO of the workspace", quick: true, command: "mkfifo p", code: 1, want: "Permission denied", differs: "others could wait for it"},
	{name: "rm -r of a repository", setup: "mkdir r && cd r && " + repo, command: "rm -rf r; ls", want: "^$", staged: "hooks are closed"},
	{name: "mv of a repository", setup: "mkdir r && cd r && " + repo, command: "mv r s; git -C s log --format=%s", want: "one", staged: "hooks are closed"},
	{name: "a FIFO", quick: true, command: "mkfifo $TMPDIR/p && (echo through > $TMPDIR/p &) && cat $TMPDIR/p && rm $TMPDIR/p", want: "through"},
	{name: "perl", command: "perl -MPOSIX -MFile::Temp=tempfile -e 'my ($h, $n) = tempfile(); print $h \"x\"; close $h; print -s $n, \" \", join(\",\", sort map { $_ * 2 } 1..3), \"\\n\"; system(\"echo child\")'", want: "child"},
	{name: "ps, kill, pgrep", quick: true, command: "sleep 100 & sleep 0.1; ps -o comm= -p $! && kill $! && wait $!; echo $?", want: "sleep\n143", fails1: "other processes are not to be seen"},
	{name: "nproc, uname, date, id", command: "nproc && uname -s && date -u -d @0 +%F && id -u && id -g && whoami && test -n \"$(hostname)\" && tty", want: "1970-01-01", code: 1},
	{name: "locale", command: "locale | head -1 && printf '%s' 'äö' | wc -m && locale -a | grep -c C.utf8", want: "LANG=C.UTF-8\n2\n1"},
	{name: "the time zone", command: "TZ=Europe/Berlin date -d @0 +%H:%M && date -d @0 +%Z && python3 -c 'import zoneinfo; print(zoneinfo.ZoneInfo(\"Asia/Tokyo\"))'", want: "01:00"},
	{name: "process substitution", command: "diff <(echo a) <(echo b); cat <(echo through) && echo x | tee >(cat > f) >/dev/null; sleep 0.1; cat f; tee /dev/stderr <<< both 2>&1", want: "through"},
	{name: "here documents", command: "cat <<E && cat <<< string && wc -c < <(yes | head -c 200000)\nhere $((1 + 1))\nE", want: "here 2\nstring\n200000"},
	{name: "background jobs", command: "for i in 1 2 3; do (sleep 0.0$i; echo $i > f$i) & done; wait; cat f?; (exit 3) & wait $!; echo $?; coproc cat; echo co >&${COPROC[1]}; read -r l <&${COPROC[0]}; echo $l", want: "3\nco"},
	{name: "trap", quick: true, command: "trap 'echo cleaned' EXIT; trap 'echo term' TERM; kill -TERM $$; (trap 'echo inner; exit 4' INT; kill -INT $BASHPID; sleep 1); echo $?", want: "term\ninner\n4\ncleaned"},
	{name: "set -e, pipefail", command: "set -euo pipefail; false | true; echo not reached", code: 1},
	{name: "timeout, time, env, which, nohup, nice", command: "timeout 0.1 sleep 5; echo $?; TIMEFORMAT=timed; time true 2>&1; env -i A=b env; which sh; nohup echo nohup 2>/dev/null; nice -n 5 echo nice; type cd; command -v ls", want: "124"},
	{name: "ulimit", command: "ulimit -c; ulimit -n; (ulimit -n 64; ulimit -n)", want: "64", differs: "there are limits"},
	{name: "arrays, arithmetic, globs", command: "shopt -s globstar nullglob; mkdir -p a/b; touch a/b/c.x a/d.x; f=(**/*.x); echo ${#f[@]} ${f[0]} $((2 ** 10)); declare -A m=([k]=v); echo ${m[k]}", want: "2 a/b/c.x 1024\nv"},
	{name: "flock, sync, split, truncate, dd", command: "flock l echo locked && dd if=/dev/zero of=z bs=1k count=100 status=none && split -n 4 z && ls x* | wc -l && truncate -s 10M s && sync s && stat -c %s s && shuf -i 1-3 | sort | tr '\\n' ' '", want: "locked\n4\n10485760"},
	{name: "script of the workspace", quick: true, command: "printf '#!/usr/bin/env bash\\necho \"$0 $1\"\\n' > s.sh && chmod +x s.sh && ./s.sh arg && printf '#!/usr/bin/env python3\\nprint(\"py\")\\n' > s.py && chmod +x s.py && ./s.py", want: "./s.sh arg\npy"},
	{name: "strace, gdb", quick: true, command: "strace -c true", code: 1, want: "(?i)not permitted|ptrace", differs: "nothing can be traced"},
	{name: "sudo, su", command: "su -c true root < /dev/null || exit 1", code: 1, want: "", differs: "nobody can become another user"},
	{name: "unshare, mount", quick: true, command: "unshare -U true; mount -t tmpfs x . || exit 1", code: 1, want: "(?i)not permitted|denied|must be superuser", differs: "there are no namespaces and no mounts inside"},
	{name: "df", command: "df -P . | tail -1 | awk '{ print ($2 > 0) }'", want: "1"},
	{name: "openssl", command: "openssl rand -hex 4 | wc -c && echo x | openssl dgst -sha256 | cut -d' ' -f2 | head -c 8", want: "9\n73cb3858"},
	{name: "ssh without a network", command: "ssh -o BatchMode=yes git@example.com", code: 255, want: "Could not resolve|resolve hostname", differs: "there is no network"},
	{name: "crontab, at, systemctl", command: "systemctl status 2>&1 | head -1; crontab -l 2>&1 | head -1; true", differs: "there are no services inside"},
}

// onlyNow lists files whose content depends on the time and the place of their creation.
var onlyNow = []struct {
	file  *regexp.Regexp
	clean func([]byte) []byte // of its content; nil: it is not compared, nor is what is below
}{
	{regexp.MustCompile(`/\.git/(.*/)?index$`), cleanIndex},
	{regexp.MustCompile(`\.pyc$`), func(b []byte) []byte { return slices.Concat(b[:8], b[12:]) }},             // but for the time of the source
	{regexp.MustCompile(`/\.ninja_(log|deps)$|/Testing/Temporary/`), nil},                                     // what took how long
	{regexp.MustCompile(`/CMakeFiles/CMake(Output|Error)\.log$`), nil},                                        // temporary names
	{regexp.MustCompile(`/target/(.*/)?(incremental/.*|.*\.rlib|\.fingerprint/.*|\.rustc_info\.json)$`), nil}, // random names, tables without an order
}

// cleanIndex removes times and inodes from an index of git, and sizes, which depend on the
// times.
func cleanIndex(b []byte) []byte {
	b = slices.Clone(b)
	for at, n := 12, binary.BigEndian.Uint32(b[8:]); n > 0; n-- {
		clear(b[at : at+24])
		clear(b[at+36 : at+40])
		at += (62 + bytes.IndexByte(b[at+62:], 0) + 8) &^ 7
	}
	return b[:len(b)-sha1.Size]
}

// asLater returns a tree without the parts that differ when it is made at another time.
func asLater(t testing.TB, dir string) map[string]string {
	t.Helper()
	tree := wholeTree(t, dir)
	for name := range tree {
		for _, o := range onlyNow {
			if !o.file.MatchString(name) {
				continue
			}
			delete(tree, name)
			if o.clean != nil {
				data, err := os.ReadFile(dir + name)
				if err != nil {
					t.Fatal(err)
				}
				tree[name] = fmt.Sprintf("%q", o.clean(data))
			}
		}
	}
	return tree
}

// everydayPlace is a place in which commands run plainly, in the jail and on a stage.
type everydayPlace struct {
	*stager
	mount, dir string // dir has the same name each time, because many files have it in them
	opts       policy.Options
	env        []string
}

func newEverydayPlace(t *testing.T) *everydayPlace {
	t.Helper()
	home, err := os.UserHomeDir()
	if err == nil {
		home, err = filepath.EvalSymlinks(home)
	}
	if err != nil {
		t.Fatal(err)
	}
	mount, err := os.MkdirTemp("/var/tmp", "everyday-") // not below the directory that is the command's own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeTree(mount) })
	p := &everydayPlace{mount: mount, dir: filepath.Join(mount, "w")}
	p.stager = newStager(t, Options{Home: home, LayersDir: newLayers(t), Caches: CacheNames})
	p.opts = policy.Options{Limits: policy.Limits{ExecTimeout: 5 * time.Minute}, Mounts: []policy.Mount{{Host: mount, Write: true}}}
	_, k := p.tiers()
	pl, err := p.plan(k, policy.Exec{Mounts: p.opts.Mounts}, mount)
	if err != nil {
		t.Fatal(err)
	}
	p.env = append(environment(pl.path, home, t.TempDir(), p.dir), "GIT_OPTIONAL_LOCKS=0", "PYTHONDONTWRITEBYTECODE=1")
	return p
}

// empty makes the directory again.
func (p *everydayPlace) empty(t *testing.T) {
	t.Helper()
	removeTree(p.dir)
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

func (p *everydayPlace) plainly(t *testing.T, command string) services.CommandResult {
	t.Helper()
	c := exec.CommandContext(t.Context(), "bash", "-c", identity+command)
	c.Dir, c.Env = p.dir, p.env
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	ended := endOf(c.ProcessState)
	ended.Stdout, ended.Stderr = out.Bytes(), errs.Bytes()
	return ended
}

// setUp makes the directory again, with the result of setup.
func (p *everydayPlace) setUp(t *testing.T, setup string) {
	t.Helper()
	p.empty(t)
	if out := p.plainly(t, setup); out.Code == nil || *out.Code != 0 {
		t.Fatal("set up: ", describe(out))
	}
}

// Everyday commands have the same results in the jail and on a stage as outside.
func TestEverydayCommands(t *testing.T) {
	needHelper(t)
	if os.Getenv(again) != "" && *tier != 1 {
		return // the tiers between do not differ from 3 or 1
	}
	help, err := os.ReadFile("../../cmd/stockade/help/bash.md")
	if err != nil {
		t.Fatal(err)
	}
	p := newEverydayPlace(t)
	for _, e := range everydayCommands {
		if e.staged != "" && !strings.Contains(strings.Join(strings.Fields(string(help)), " "), e.name) {
			t.Errorf("the help page does not say that this differs: %s", e.name)
		}
		if !e.quick && !*everyday {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			as := func(how string, out services.CommandResult) {
				t.Helper()
				text := string(out.Stdout)
				if e.differs != "" {
					text += string(out.Stderr)
				}
				if out.Code == nil || *out.Code != e.code || !regexp.MustCompile(e.want).MatchString(text) {
					t.Errorf("%s: want code %d and %q: %s", how, e.code, e.want, describe(out))
				}
			}
			var plain, staged services.CommandResult
			var tree map[string]string
			onStage := p.layered() && e.differs == ""
			if onStage {
				p.setUp(t, e.setup)
				var set *stage.Set
				staged, set = p.run(t, p.dir, identity+e.command, p.opts)
				if err := set.Commit(context.Background()); err != nil {
					t.Errorf("commit: %v", err)
				}
				tree = asLater(t, p.dir)
			}
			if e.differs == "" {
				p.setUp(t, e.setup)
				plain = p.plainly(t, e.command)
				as("plainly", plain)
				if onStage {
					diff := cmp.Diff(asLater(t, p.dir), tree)
					same := diff == "" && staged.Code != nil && *staged.Code == e.code && bytes.Equal(plain.Stdout, staged.Stdout)
					if !same && e.staged == "" {
						t.Errorf("plainly %s\non a stage %s\n(-plain +staged and made):\n%s", describe(plain), describe(staged), diff)
					} else if same && e.staged != "" {
						t.Errorf("it does the same, although %s", e.staged)
					}
				}
			}
			if onStage && !e.quick {
				return // to have it change the directory itself differs in little
			}
			p.empty(t)
			command := identity + "(" + e.setup + "\n:) >/dev/null 2>&1\n" + e.command
			out, err := p.Run(t.Context(), grantWith(t, p.dir, command, p.opts), bash(p.dir, command))
			if err != nil {
				t.Fatal(err)
			}
			if e.fails1 == "" || p.layered() {
				as("in the jail", out)
				if e.differs == "" && !bytes.Equal(plain.Stdout, out.Stdout) {
					t.Errorf("plainly %s\nin the jail %s", describe(plain), describe(out))
				}
			} else if out.Code != nil && *out.Code == e.code && regexp.MustCompile(e.want).MatchString(string(out.Stdout)) {
				t.Errorf("it works, although %s: %s", e.fails1, describe(out))
			}
		})
	}
}
