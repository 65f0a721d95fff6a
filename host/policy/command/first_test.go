package command

import (
	"strings"
	"testing"
)

func TestFirstWords(t *testing.T) {
	for text, want := range map[string]string{
		"go test ./...": "go test", "go build -o x .": "go build", "git add a b": "git add", "git commit -m x": "git commit", "git commit -qam x": "git commit", "npm ci": "npm ci", "npm test --silent": "npm test", "cargo fmt": "cargo fmt",
		"mkdir -p a": "mkdir", "touch x": "touch", "cp -r a b": "cp", "ln -s a b": "ln",
		"go test -count=1 -run X -race ./...": "go test", "go test -p 1 ./...": "go test", "go test -cover": "go test", "cargo build -p x": "cargo build",
	} {
		if got := FirstWords(strings.Fields(text)); strings.Join(got, " ") != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// What loses something that git does not hold, reaches out, or runs what its arguments name has no
// first words.
func TestAttacksOnFirstWords(t *testing.T) {
	for _, text := range strings.Split(`git reset --hard|git stash|git clean -fd|git branch -D x|git checkout -- .|git switch x|git restore .|git merge x|git rm a|git cherry-pick x|git commit --amend
		|git commit --template=x|git commit -S|git commit --gpg-sign=x|git commit --edit|git add -p|git add --patch|git add --pathspec-from-file=x
		|git -c core.pager=./evil log|git push|git config x y|git rebase --exec ./evil|FOO=bar go test
		|docker run x|docker build .|npx x|uv run x|uv sync|pip install x|tox|mocha -r ./evil|go mod tidy|go get x|go install x|go run ./evil|go generate|go
		|go build -ldflags=-extld=./evil|go build -ldflags -extld=./evil .|go build -overlay x|go build -compiler=gccgo|go build -modfile=x|go test -C /elsewhere
		|go test -exec ./evil ./...|go test --exec=./evil|go test -run -exec=./evil|go build -toolexec ./evil|go vet -vettool=./evil|go test -exe=x|go test -counter=x
		|npm run evil|npm install x|npm test --script-shell=./evil|npm test --prefix evil|npm ci --node-options=--require=./evil.js|npm test --shell=./evil|pnpm test -C evil|yarn test --cwd evil
		|cargo run|cargo --config x build|cargo test --manifest-path evil/Cargo.toml|cargo build --target-dir ../x|cargo build -Zunstable|cargo test --config=x
		|pytest|pytest -p evil|pytest -c evil|pytest -o addopts=-pevil|eslint -f ./evil.js .|eslint --rulesdir evil .|jest --runner=./evil|jest --globalSetup=x|prettier --plugin=./evil.js|tsc --build evil
		|gulp x|grunt x|vitest run|turbo run x|nx run x|bunx x|pdm run x|hatch run x|rye run x|pipenv run x|corepack x|mise exec x|asdf exec x|cross-env x|dotenv x|coverage run x|nodemon x|concurrently x|invoke x|scons|cabal run|dune exec x|honcho start|ruff check .|doit
		|sh -c evil|python3 evil.py|env x|xargs touch|make test|./mkdir a|/usr/bin/cp a b|node_modules/.bin/tsc|sudo cp a b|/tmp/go test|busybox`, "|") {
		if got := FirstWords(strings.Fields(text)); got != nil {
			t.Errorf("%s: %q", text, got)
		}
	}
}
