package jail

import (
	"bytes"
	"os"
	"slices"
	"testing"
)

// readingPlace holds the files that the commands read. Git's data about a.txt is old, so git
// would refresh its index.
const readingPlace = branched + " && git tag -a v1 -m v1 && git remote add origin https://example.com/x && echo x >> a.txt && git stash -q && " + module + " && go build -o bin/p . && mkdir c && cd c && " + c + ` && cd .. &&
	printf 'a: a.c\n\t$(CC) -o a a.c\n' > c/Makefile && printf 'import json\nprint(json.dumps(1))\n' > m.py && mkdir q && echo 'x = 1' > q/__init__.py && echo 'package q' > q/q.go &&
	printf '{"name": "w", "version": "1.0.0", "scripts": {"hello": "echo hello"}}\n' > package.json && mkdir node_modules && echo 'console.log(1)' > j.js &&
	printf '{"a": [1, 2]}\n' > a.json && printf 'b,2\na,1\n' > a.csv && sqlite3 a.db 'create table t(x); insert into t values(1), (2)' &&
	tar czf a.tgz src && zip -qr a.zip src && gzip -k a.csv && ln -s src l && mkdir empty && echo new > new &&
	cp a.txt b.txt && cat a.txt >> b.txt && touch -d @1000000000 a.txt`

// readingCommands only read. They print the same on a stage as plainly, and change nothing.
var readingCommands = []string{
	"git status",
	"git log --oneline --graph --all",
	"git log --stat --until=2020-01-01 -S one -- a.txt",
	"git diff main b -- a.txt src && git diff --cached --quiet; git diff-tree -p HEAD",
	"git show HEAD:src/lib/n.txt && git show --stat b",
	"git grep -n 1 && git grep x b",
	"git stash list && git stash show -p",
	"git ls-files && git ls-tree -r HEAD",
	"git rev-parse HEAD --abbrev-ref @ --show-toplevel",
	"git fsck && git check-ignore new; git archive HEAD | tar t",

	"ls -la --time-style=+%s src l a.csv && ls",
	"find . -name '*.go' -newer a.txt -exec grep -l main {} + | sort",
	"grep -rn main --include=*.go . | sort",
	"du -sb src && du -a --apparent-size src/lib/n.txt",
	"stat -c '%n %s %a %F' a.txt src l && test -r a.txt && readlink -f l/x.c",
	"file a.txt main.go a.tgz a.db a.json",
	"diff -r src l; diff a.txt b.txt; cmp a.txt b.txt",
	"unzip -l a.zip | tail -1 && unzip -p a.zip src/x.c",
	"xxd a.txt && od -c a.csv | head -3 && strings bin/p | grep -c runtime",
	"sort a.csv && sort -u src/lib/n.txt | tail -1 && uniq -c a.txt",
	"jq -c .a a.json && jq -r '.scripts.hello' package.json",
	"sqlite3 a.db 'select sum(x) from t' .schema",
	"echo $PWD && pwd -P && basename $PWD && dirname src/x.c && env | grep -c PATH",
	"which go && type ls && command -v git && uname -s && nproc && df -P . | wc -l",
}

// Commands that take long, or are much like another one.
var moreReadingCommands = []string{
	"git status --short --branch --ignored",
	"git log -p --follow src/lib/n.txt",
	"git shortlog -sn HEAD",
	"git diff --stat main b",
	"git diff --name-only HEAD~1 b",
	"git blame -s src/lib/n.txt",
	"git branch -a -vv && git branch --contains HEAD",
	"git describe --always && git tag -n",
	"git remote -v && git config --list --local",
	"git reflog && git cherry main b",
	"git merge-base main b && git rev-list --count HEAD",
	"git cat-file -p HEAD && git count-objects -v",
	"git worktree list && git for-each-ref",
	"git diff --no-index a.txt b.txt; git format-patch --stdout -1 | head -5",
	"find . -type f -not -path './.git/*' | sort",
	"cat a.txt main.go && head -2 src/lib/n.txt && tail -n +19 src/lib/n.txt",
	"wc -l *.go src/lib/* && nl a.txt",
	"sha256sum a.txt src/*.c && md5sum a.json && cksum a.csv",
	"tar tzf a.tgz && tar xzOf a.tgz src/x.c",
	"zcat a.csv.gz && zgrep a a.csv.gz && gzip -l a.csv.gz | wc -l",
	"awk -F, '{ s += $2 } END { print s }' a.csv && cut -d, -f1 a.csv",
	"sed -n '/one/p' a.txt && tr a-z A-Z < a.txt && rev a.txt && tac a.csv",
	"comm -12 a.txt b.txt && join -t, a.csv a.csv && paste a.txt a.csv",
	"perl -ne 'print if /one/' a.txt && perl -c -e 'print 1' 2>&1",
	"bash -n a.csv; bash -c 'echo $((1 + 1))'; seq 3 | xargs -n1 echo",
	"xargs -a a.txt echo && tee < a.txt && split --help | wc -l",

	"go vet ./... && go list ./... && go list -m",
	"go build ./... && go version && go env GOOS",
	"go test ./... | cut -f1,2",
	"go doc fmt.Println && go doc . Two",
	"gofmt -l . && gofmt -d main.go && go mod verify",
	"go run . && go mod graph && bin/p",
	"make -nC c && make -C c -n a && make --version | head -1",
	"gcc -fsyntax-only -Wall c/a.c && gcc -E c/a.c | grep -c puts && gcc -o /dev/null c/a.c",
	"nm bin/p | grep -c main.main && objdump -h bin/p | grep -c text && readelf -h bin/p",
	"node -e 'console.log(require(\"./package.json\").name)' && node j.js && node --check j.js",
	"npm ls && npm pkg get scripts && npm run && npm run -s hello",
	"npm --version && npm config get registry && npm root",
	"python3 -c 'print(open(\"a.json\").read())' && python3 m.py && python3 -c 'import m, q; print(q.x)'",
	"python3 -m json.tool a.json && python3 -m ast m.py",
	"python3 -c 'import ast, sqlite3; ast.parse(open(\"m.py\").read()); print(sqlite3.connect(\"a.db\").execute(\"select * from t\").fetchall())'",
}

func TestReadingCommandsChangeNothing(t *testing.T) {
	if os.Getenv(again) != "" || !testJail(t).layered() {
		return
	}
	p := newEverydayPlace(t)
	p.setUp(t, readingPlace)
	commands := readingCommands
	if *everyday {
		commands = slices.Concat(commands, moreReadingCommands)
	}
	for _, command := range commands {
		t.Run(command, func(t *testing.T) {
			staged, set := p.run(t, p.dir, command, p.opts)
			changes, err := set.Changes(t.Context())
			if err != nil {
				t.Error(err)
			}
			for _, c := range changes {
				t.Errorf("%s %s", c.Kind, c.Path)
			}
			plain := p.plainly(t, command)
			if *plain.Code != *staged.Code || !bytes.Equal(plain.Stdout, staged.Stdout) || len(plain.Stdout) == 0 {
				t.Errorf("plainly %s\non a stage %s", describe(plain), describe(staged))
			}
		})
	}
}
