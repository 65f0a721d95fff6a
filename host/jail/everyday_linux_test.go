package jail

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
)

var everyday = flag.Bool("everyday", false, "run all everyday commands, which takes minutes")

// An everydayCommand runs in an empty directory, in the jail and plainly. Both
// have to print the same and end with the same code.
type everydayCommand struct {
	name    string
	command string
	want    string // a regular expression for standard output
	code    int
	quick   bool // it runs without -everyday, too
	// differs is why the jail does something else than what is plain; then only that
	// is looked at, and want is also for standard error.
	differs string
	fails1  string // why it fails without a root of its own
}

const (
	noSockets = "no socket can be made where there is no network of its own"

	repo     = "git init -q -b main . && echo one > a.txt && git add . && git commit -qm one && "
	identity = "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b GIT_AUTHOR_DATE=2001-02-03T04:05:06Z GIT_COMMITTER_DATE=2001-02-03T04:05:06Z; "
	module   = "printf 'module example.com/p\\n\\ngo 1.20\\n' > go.mod && printf 'package main\\n\\nimport \"fmt\"\\n\\nfunc Two() int { return 2 }\\n\\nfunc main() { fmt.Println(\"two is\", Two()) }\\n' > main.go && " +
		"printf 'package main\\n\\nimport \"testing\"\\n\\nfunc TestTwo(t *testing.T) {\\n\\tif Two() != 2 {\\n\\t\\tt.Fail()\\n\\t}\\n}\\n' > main_test.go && "
	crate = "cargo init -q --vcs none --name p . && "
	c     = "printf '#include <stdio.h>\\nint main(void) { puts(\"hello\"); return 0; }\\n' > a.c && "
)

var everydayCommands = []everydayCommand{
	{name: "git init, status", quick: true, command: "git init -q -b main . && echo x > f && git status --short && git status | head -1", want: `\?\? f\nOn branch main`},
	{name: "git commit", quick: true, command: identity + repo + "git log --format='%an %s' && git show --stat --format= HEAD", want: "A one"},
	{name: "git commit --amend", command: identity + repo + "echo two > a.txt && git commit -qa --amend -m two && git log --oneline", want: "two"},
	{name: "git branch, checkout, merge", quick: true, command: identity + repo + "git checkout -qb b && echo b > b.txt && git add . && git commit -qm b && git checkout -q main && git merge --no-edit -q --no-ff b && git log --format=%s && git branch -d b", want: "Merge branch 'b'"},
	{name: "git merge with a conflict", command: identity + repo + "git checkout -qb b && echo b > a.txt && git commit -qam b && git checkout -q main && echo c > a.txt && git commit -qam c && git merge b; c=$?; cat a.txt; git merge --abort; exit $c", want: "(?s)CONFLICT.*<<<<<<<", code: 1},
	{name: "git rebase", command: identity + repo + "git checkout -qb b && echo b > b.txt && git add . && git commit -qm b && git checkout -q main && echo c > c.txt && git add . && git commit -qm c && git rebase -q main b && git log --format=%s", want: "b\nc\none"},
	{name: "git rebase -i", command: identity + repo + "for i in 2 3; do echo $i > f$i; git add .; git commit -qm $i; done; GIT_SEQUENCE_EDITOR=\"sed -i '2s/pick/fixup/'\" git rebase -qi HEAD~2 && git log --format=%s", want: "2\none"},
	{name: "git stash", quick: true, command: identity + repo + "echo x >> a.txt && git stash -q && cat a.txt && git stash pop -q && git diff", want: "(?s)one.*\\+x"},
	{name: "git diff, apply", command: identity + repo + "echo x >> a.txt && git diff > p && git checkout -q a.txt && git apply p && git diff --stat", want: "1 insertion"},
	{name: "git worktree", command: identity + repo + "git worktree add -q w && git -C w log --format=%s && git worktree list | wc -l && git worktree remove w && git branch", want: "one\n2"},
	{name: "git tag, describe", command: identity + repo + "git tag -a v1 -m v1 && git describe && git tag -n", want: "v1"},
	{name: "git clone", command: identity + "mkdir o && (cd o && " + repo + "true) && git clone -q o n && git clone -q --bare o b.git && git clone -q file://$PWD/b.git u && git -C n push -q ../b.git main:x && git -C u fetch -q && git -C u branch -a && git -C n log --format=%s", want: "remotes/origin/x"},
	{name: "git remote, config", quick: true, command: identity + repo + "git remote add origin https://example.com/x && git config core.editor true && git remote -v && git config core.editor", want: "true"},
	{name: "git fetch without a network", quick: true, command: "git init -q . && git fetch -q https://example.com/x", want: "Could not resolve host|unable to access", code: 128, differs: "there is no network"},
	{name: "git gc, fsck", command: identity + repo + "git gc -q && git fsck && git count-objects -v | grep in-pack", want: "in-pack: 3"},
	{name: "git mv, rm", command: identity + repo + "mkdir d && git mv a.txt d/b.txt && git commit -qm mv && git mv d e && git commit -qm mv && git rm -q e/b.txt && git status --short", want: "D  e/b.txt"},
	{name: "git submodule", command: identity + "mkdir o && (cd o && " + repo + "true) && git init -q n && cd n && git -c protocol.file.allow=always submodule add -q ../o s && git submodule status", want: "s \\(heads/main\\)"},
	{name: "git hooks", command: identity + repo + "printf '#!/bin/sh\\necho hook ran\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && echo x > b && git add . && git commit -qm x 2>&1", want: "hook ran"},
	{name: "git bisect", command: identity + repo + "for i in 1 2 3 4; do echo $i > n; git add .; git commit -qm $i; done; git bisect start HEAD HEAD~3 >/dev/null && git bisect run sh -c 'test $(cat n) -lt 3' | grep -o 'first bad'", want: "first bad"},
	{name: "git archive, bundle", command: identity + repo + "git archive HEAD | tar t && git bundle create -q b HEAD && git ls-remote b | wc -l", want: "a.txt\n1"},
	{name: "git clean, reset, restore", command: identity + repo + "touch x && echo y > a.txt && git clean -fdq && git restore a.txt && git reset -q --hard && git status --short && cat a.txt", want: "one"},
	{name: "git grep, blame", command: identity + repo + "git grep one && git blame -s a.txt | cut -d')' -f2", want: "a.txt:one\n one"},

	{name: "go build, run", command: module + "go build -o p . && ./p && go run .", want: "two is 2\ntwo is 2"},
	{name: "go test, vet", command: module + "go vet ./... && go test ./... | cut -f1,2 && go test ./... | grep -c cached", want: "ok *\texample.com/p\n1"},
	{name: "go test -race", command: module + "go test -race ./... | cut -f1,2", want: "ok *\texample.com/p"},
	{name: "go fmt, mod tidy, generate, list", command: module + "printf 'package main\\n\\n//go:generate echo generated\\nvar X  = 1\\n' > x.go && go fmt ./... && go mod tidy && go generate ./... && go list ./... && go env GOPROXY >/dev/null", want: "x.go\ngenerated\nexample.com/p"},
	{name: "go get without a network", quick: true, command: module + "go get example.com/nothing", want: "GOPROXY=off", code: 1, differs: "there is no network"},

	{name: "npm init, run", command: "npm init -y >/dev/null && npm pkg set scripts.hello='echo hello $npm_package_name' name=p && npm run -s hello && npm test; npm ls", want: "hello p", code: 0},
	{name: "npm install of a directory", command: "mkdir d && echo '{\"name\":\"d\",\"version\":\"1.0.0\",\"bin\":\"d.js\"}' > d/package.json && printf '#!/usr/bin/env node\\nconsole.log(\"bin ran\")\\n' > d/d.js && npm init -y >/dev/null && npm install --silent ./d >/dev/null && npm ci --silent >/dev/null && npx d && npm ls --parseable | wc -l", want: "bin ran\n2"},
	{name: "npm pack, install of a tarball", command: "mkdir d && echo '{\"name\":\"d\",\"version\":\"1.0.0\"}' > d/package.json && (cd d && npm pack --silent) && npm init -y >/dev/null && npm install --silent ./d/d-1.0.0.tgz && ls node_modules", want: "d", fails1: "npm packs into its cache, which can only be read"},
	{name: "npm install without a network", command: "npm init -y >/dev/null && npm install is-odd-that-nobody-has", want: "ENOTCACHED", code: 1, differs: "there is no network"},
	{name: "node", quick: true, command: "node -e 'console.log([1, 2].map(x => x * 2).join())' && node -e 'const {Worker} = require(\"worker_threads\"); new Worker(\"console.log(5)\", {eval: true})' && node -e 'console.log(require(\"child_process\").execSync(\"echo child\").toString().trim())'", want: "2,4\n5\nchild"},
	{name: "node files", command: "node -e 'const fs = require(\"fs\"); fs.mkdirSync(\"a/b\", {recursive: true}); fs.writeFileSync(\"a/b/c\", \"x\"); fs.renameSync(\"a\", \"d\"); fs.cpSync(\"d\", \"e\", {recursive: true}); console.log(fs.readFileSync(\"e/b/c\", \"utf8\")); fs.rmSync(\"d\", {recursive: true})' && ls", want: "x\ne"},
	{name: "node test", command: "echo 'require(\"node:test\")(\"adds\", () => require(\"assert\").equal(1 + 1, 2))' > a.test.js && node --test | grep -c '^# pass 1\\|pass 1'", want: "1"},
	{name: "node on a local port", command: "node -e 'const s = require(\"http\").createServer((q, r) => r.end(\"served\")).listen(0, \"127.0.0.1\", () => require(\"http\").get({port: s.address().port, host: \"127.0.0.1\"}, r => r.on(\"data\", d => { console.log(d.toString()); s.close() })))'", want: "served", fails1: noSockets},

	{name: "cargo new, build, test, run", command: "cargo new -q p --vcs none && cd p && cargo build -q && cargo test -q 2>&1 | grep -c 'test result: ok' && cargo run -q", want: "Hello, world!"},
	{name: "cargo with a dependency", command: "cargo new -q --lib d --vcs none && cargo new -q p --vcs none && cd p && cargo add -q --path ../d && cargo build -q && grep -c 'name = \"d\"' Cargo.lock && cargo tree | wc -l", want: "1\n2"},
	{name: "cargo check, fmt, clippy", command: crate + "cargo check -q && cargo fmt --check && cargo clippy -q && echo fine", want: "fine"},
	{name: "cargo add without a network", command: crate + "cargo add serde-that-nobody-has", want: "(?i)offline|network|registry", code: 101, differs: "there is no network"},
	{name: "rustc", command: "echo 'fn main() { println!(\"hello\") }' > a.rs && rustc a.rs && ./a", want: "hello"},

	{name: "python3", command: "python3 -c 'import json, ssl, sqlite3, zlib, ctypes; print(json.dumps({\"a\": 1}))'", want: `{"a": 1}`},
	{name: "python3 processes and threads", quick: true, command: "python3 -c '\nimport subprocess, threading, concurrent.futures as f\nprint(subprocess.run([\"echo\", \"child\"], capture_output=True, text=True).stdout.strip())\nt = threading.Thread(target=print, args=(\"thread\",)); t.start(); t.join()\nwith f.ThreadPoolExecutor(4) as e: print(sum(e.map(abs, range(-3, 3))))\n'", want: "child\nthread\n9"},
	{name: "python3 multiprocessing", command: "printf 'import multiprocessing as m\\ndef f(x): return x * x\\nif __name__ == \"__main__\":\\n    with m.Pool(2) as p: print(p.map(f, range(4)))\\n    q = m.Queue(); q.put(1); print(q.get())\\n    print(m.Lock() is not None)\\n' > a.py && python3 a.py", want: `\[0, 1, 4, 9\]`, fails1: "named semaphores and shared memory are files of /dev/shm"},
	{name: "python3 asyncio", quick: true, command: "python3 -c '\nimport asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec(\"echo\", \"child\", stdout=asyncio.subprocess.PIPE)\n    print((await p.communicate())[0].decode().strip())\n    s = await asyncio.start_server(lambda r, w: w.close(), \"127.0.0.1\", 0)\n    r, w = await asyncio.open_connection(*s.sockets[0].getsockname())\n    print(await r.read())\nasyncio.run(f())\n'", want: "child\nb''", fails1: noSockets},
	{name: "python3 unittest", quick: true, command: "printf 'import unittest\\nclass T(unittest.TestCase):\\n    def test(self): self.assertEqual(1, 1)\\n' > test_a.py && python3 -m unittest 2>&1 | tail -1", want: "OK"},
	{name: "python3 tempfile", command: "python3 -c 'import tempfile, os; f = tempfile.NamedTemporaryFile(); f.write(b\"x\"); f.flush(); print(os.path.getsize(f.name)); print(os.path.isdir(tempfile.mkdtemp()))'", want: "1\nTrue"},
	{name: "pip install of a wheel", command: "mkdir -p w/d-1.dist-info && echo 'print(\"imported\")' > w/d.py && printf 'Metadata-Version: 2.1\\nName: d\\nVersion: 1\\n' > w/d-1.dist-info/METADATA && printf 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n' > w/d-1.dist-info/WHEEL && printf 'd.py,,\\nd-1.dist-info/METADATA,,\\nd-1.dist-info/WHEEL,,\\nd-1.dist-info/RECORD,,\\n' > w/d-1.dist-info/RECORD && (cd w && python3 -m zipfile -c ../d-1-py3-none-any.whl d.py d-1.dist-info) && python3 -m venv v && v/bin/pip install -q --no-index ./d-1-py3-none-any.whl && v/bin/python -c 'import d'", want: "imported"},
	{name: "pip install without a network", command: "python3 -m venv v && v/bin/pip install nothing-of-that-name", want: "NewConnectionError|No matching distribution", code: 1, differs: "there is no network"},

	{name: "make", quick: true, command: "printf 'all: a b\\na b:\\n\\t@echo $@ > $@; echo made $@\\n' > Makefile && make -s && make -j2 -s && make -n", want: "made a\nmade b"},
	{name: "gcc", quick: true, command: c + "gcc -O2 -Wall -o a a.c && ./a", want: "hello"},
	{name: "gcc with a library", command: c + "echo 'int two(void) { return 2; }' > l.c && gcc -shared -fPIC -o libl.so l.c && printf 'int two(void); int main(void) { return two(); }' > m.c && gcc m.c -L. -ll -Wl,-rpath,$PWD -pthread -lm && ./a.out; echo $?; ar rc l.a l.c && ldd a.out | grep -c libl", want: "2\n1"},
	{name: "g++", command: "printf '#include <iostream>\\n#include <thread>\\nint main() { std::thread([] { std::cout << \"thread\\\\n\"; }).join(); }\\n' > a.cc && g++ -std=c++17 -pthread a.cc && ./a.out", want: "thread"},
	{name: "gcc -fsanitize=address", command: c + "gcc -g -fsanitize=address,undefined -o a a.c && ASAN_OPTIONS=detect_leaks=0 ./a || exit 1", code: 1, want: "failed to allocate", differs: "data is limited, and it reserves terabytes"},
	{name: "cmake", command: c + "printf 'cmake_minimum_required(VERSION 3.10)\\nproject(p C)\\nadd_executable(a a.c)\\nenable_testing()\\nadd_test(NAME a COMMAND a)\\n' > CMakeLists.txt && cmake -G Ninja -B b >/dev/null && cmake --build b >/dev/null && b/a && (cd b && ctest | grep -c '100% tests passed')", want: "hello\n1"},
	{name: "java", command: "printf 'class A { public static void main(String[] a) { System.out.println(\"hello\"); } }' > A.java && javac A.java && java A", want: "hello"},

	{name: "tar, gzip, xz", quick: true, command: "mkdir d && echo x > d/f && ln -s f d/l && tar czf a.tgz d && tar cJf a.txz d && rm -r d && tar xzf a.tgz && tar tf a.txz && cat d/l && gzip -c d/f | gunzip", want: "d/l"},
	{name: "zip, unzip", quick: true, command: "echo x > f && zip -q a.zip f && rm f && unzip -q a.zip && cat f && unzip -l a.zip | tail -1", want: "x\n.*1 file"},
	{name: "sqlite3", quick: true, command: "sqlite3 a.db 'create table t(x); insert into t values(1), (2); select sum(x) from t;' && sqlite3 a.db 'pragma journal_mode=wal; insert into t values(3); select count(*) from t'", want: "3\nwal\n3"},
	{name: "find, xargs, grep, sed, awk, sort", quick: true, command: "for i in 3 1 2; do echo line $i > f$i.txt; done; find . -name '*.txt' -print0 | sort -z | xargs -0 grep -h line | sed 's/line/l/' | awk '{ s += $2; print } END { print s }' | sort -r | uniq -c && find . -name \"f2*\" -type f -delete -print | wc -l && grep -rn line . | cut -d: -f3", want: "1 l 3"},
	{name: "diff, patch", quick: true, command: "printf 'a\\nb\\n' > x && printf 'a\\nc\\n' > y && diff -u --label x --label y x y > p; patch -s x p && cmp x y && diff -r x y && echo same", want: "same"},
	{name: "jq", command: "echo '{\"a\": [1, 2]}' | jq -c '.a | map(. + 1)'", want: `\[2,3\]`},
	{name: "curl without a network", quick: true, command: "curl -sS https://example.com", want: "Could not resolve host", code: 6, differs: "there is no network"},
	{name: "curl of the local port", command: "echo served > f; python3 -m http.server 8731 >/dev/null 2>&1 & for i in $(seq 50); do curl -sf http://127.0.0.1:8731/f && break; sleep 0.1; done; kill $!", want: "served", fails1: noSockets},
	{name: "wc, du, stat, head, tail, tr, tee", command: "printf 'a b\\nc\\n' > f && wc -lw f && du -b f && stat -c '%s %a' f && head -1 f | tr a-z A-Z | tee g && tail -1 f && seq 3 | paste -sd+ && basename $PWD/f && cut -c1 f | md5sum", want: "2 3 f"},
	{name: "mktemp", quick: true, command: "f=$(mktemp) && d=$(mktemp -d) && echo x > $f && cp $f $d/y && cat $d/y && rm -r $f $d", want: "x"},
	{name: "a file of /tmp", command: "echo x > /tmp/everyday-$$ && cat /tmp/everyday-$$ && rm /tmp/everyday-$$", want: "x", fails1: "the system's /tmp is not the command's, whose TMPDIR names another"},
	{name: "ln, cp -a, mv, chmod, touch, install", quick: true, command: "mkdir d && echo x > d/f && ln d/f d/h && ln -s f d/l && cp -a d e && mv e g && chmod 750 g/f && touch -d @0 g/h && install -m 755 d/f i && ls -l --time-style=+%s g | awk 'NR > 1 { print $1, $2, $NF }' && readlink g/l && test d/f -ef d/h && echo same", want: "same"},
	{name: "a FIFO", quick: true, command: "mkfifo $TMPDIR/p && (echo through > $TMPDIR/p &) && cat $TMPDIR/p && rm $TMPDIR/p", want: "through"},
	{name: "perl", quick: true, command: "perl -MPOSIX -MFile::Temp=tempfile -e 'my ($h, $n) = tempfile(); print $h \"x\"; close $h; print -s $n, \" \", join(\",\", sort map { $_ * 2 } 1..3), \"\\n\"; system(\"echo child\")'", want: "child"},
	{name: "ps, kill, pgrep", quick: true, command: "sleep 100 & sleep 0.1; ps -o comm= -p $! && kill $! && wait $!; echo $?", want: "sleep\n143", fails1: "other processes are not to be seen"},
	{name: "nproc, uname, date, id", quick: true, command: "nproc && uname -s && date -u -d @0 +%F && id -u && id -g && whoami && test -n \"$(hostname)\" && tty", want: "1970-01-01", code: 1},
	{name: "locale", quick: true, command: "locale | head -1 && printf '%s' 'äö' | wc -m && locale -a | grep -c C.utf8", want: "LANG=C.UTF-8\n2\n1"},
	{name: "the time zone", command: "TZ=Europe/Berlin date -d @0 +%H:%M && date -d @0 +%Z && python3 -c 'import zoneinfo; print(zoneinfo.ZoneInfo(\"Asia/Tokyo\"))'", want: "01:00"},
	{name: "process substitution", quick: true, command: "diff <(echo a) <(echo b); cat <(echo through) && echo x | tee >(cat > f) >/dev/null; sleep 0.1; cat f; tee /dev/stderr <<< both 2>&1", want: "through"},
	{name: "here documents", quick: true, command: "cat <<E && cat <<< string && wc -c < <(yes | head -c 200000)\nhere $((1 + 1))\nE", want: "here 2\nstring\n200000"},
	{name: "background jobs", quick: true, command: "for i in 1 2 3; do (sleep 0.0$i; echo $i >> f) & done; wait; sort f; (exit 3) & wait $!; echo $?; coproc cat; echo co >&${COPROC[1]}; read -r l <&${COPROC[0]}; echo $l", want: "3\nco"},
	{name: "trap", quick: true, command: "trap 'echo cleaned' EXIT; trap 'echo term' TERM; kill -TERM $$; (trap 'echo inner; exit 4' INT; kill -INT $BASHPID; sleep 1); echo $?", want: "term\ninner\n4\ncleaned"},
	{name: "set -e, pipefail", command: "set -euo pipefail; false | true; echo not reached", code: 1},
	{name: "timeout, time, env, which, nohup, nice", quick: true, command: "timeout 0.1 sleep 5; echo $?; TIMEFORMAT=timed; time true 2>&1; env -i A=b env; which sh; nohup echo nohup 2>/dev/null; nice -n 5 echo nice; type cd; command -v ls", want: "124"},
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

var inDirectory = regexp.MustCompile(`/\S*everyday-[0-9]+`)

// Commands that people run every day do in the jail what they do outside.
func TestEverydayCommands(t *testing.T) {
	if os.Getenv(again) != "" && *tier != 1 {
		return // the tiers between do not differ from 3 or 1
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	if home, err = filepath.EvalSymlinks(home); err != nil {
		t.Fatal(err)
	}
	j := newJail(t, Options{Home: home, Layers: newLayers(t), Caches: CacheNames})
	workspace, err := os.MkdirTemp("/var/tmp", "everyday-") // not below the directory that is the command's own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeTree(workspace) })
	opts := policy.Options{Limits: policy.Limits{ExecTimeout: 5 * time.Minute}, Mounts: []policy.Mount{{Host: workspace, Write: true}}}
	_, k := j.tiers()
	p, err := j.plan(k, policy.Exec{Mounts: opts.Mounts}, workspace)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range everydayCommands {
		if !e.quick && !*everyday {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			dir := everydayDir(t, workspace)
			out, err := j.Run(t.Context(), grantWith(t, dir, e.command, opts), bash(dir, e.command))
			if err != nil {
				t.Fatal(err)
			}
			text := inDirectory.ReplaceAllString(string(out.Stdout), "DIR")
			if e.fails1 != "" && !j.layered() {
				if out.Code != nil && *out.Code == e.code && regexp.MustCompile(e.want).MatchString(text) {
					t.Errorf("it works, although %s: %s", e.fails1, describe(out))
				}
				return
			}
			if e.differs != "" {
				text += string(out.Stderr)
			}
			if out.Code == nil || *out.Code != e.code || !regexp.MustCompile(e.want).MatchString(text) {
				t.Fatalf("want code %d and %q: %s", e.code, e.want, describe(out))
			}
			if e.differs != "" {
				return
			}
			plain := exec.Command("bash", "-c", e.command)
			plain.Dir = everydayDir(t, workspace)
			plain.Env = environment(p.path, home, t.TempDir(), plain.Dir)
			want, err := plain.Output()
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if got := inDirectory.ReplaceAllString(string(want), "DIR"); got != text || plain.ProcessState.ExitCode() != e.code {
				t.Errorf("plainly it prints %q (code %d)\nand in the jail %q\nstderr %.500q", got, plain.ProcessState.ExitCode(), text, out.Stderr)
			}
		})
	}
}

func everydayDir(t *testing.T, workspace string) string {
	dir, err := os.MkdirTemp(workspace, "everyday-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeTree(dir) })
	return dir
}
