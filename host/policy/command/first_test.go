package command

import (
	"strings"
	"testing"
)

func TestFirstWords(t *testing.T) {
	for text, want := range map[string]string{
		"go test ./...": "go test", "go build -o x .": "go build", "git add a b": "git add", "git commit -m x": "git commit", "npm ci": "npm ci", "cargo fmt": "cargo fmt",
		"pytest tests": "pytest", "mkdir -p a": "mkdir", "/usr/bin/cp a b": "/usr/bin/cp", "touch x": "touch",
		"go test -count=1 -run X -race ./...": "go test", "go test -p 1 ./...": "go test", "go mod tidy": "go mod", "gofmt -w .": "gofmt", "ruff check .": "ruff", "uv sync": "uv sync", "git cherry-pick x": "git cherry-pick",
		// What loses something that git holds, and what reaches out.
		"git reset --hard": "", "git stash": "", "git clean -fd": "", "git branch -D x": "", "docker run x": "", "docker build .": "", "npx x": "", "uv run x": "", "pip install x": "", "tox": "",
		"go build -ldflags=-extld=./evil": "", "go build -overlay x": "", "go test -C /elsewhere": "", "mocha -r ./evil": "",
		// What runs others has none.
		"go test -exec ./evil ./...": "", "go test --exec=./evil": "", "go build -toolexec ./evil": "", "go vet -vettool=./evil": "", "go run ./evil": "", "go generate": "", "go": "",
		"git -c core.pager=./evil log": "", "git push": "", "git config x y": "", "git rebase --exec ./evil": "", "npm run evil": "", "npm test --script-shell=./evil": "", "cargo run": "", "cargo --config x build": "",
		"pytest -p evil": "", "pytest -c evil": "", "sh -c evil": "", "python3 evil.py": "", "env x": "", "xargs touch": "", "make test": "", "./mkdir a": "", "node_modules/.bin/tsc": "", "sudo cp a b": "", "/tmp/go test": "",
	} {
		if got, ok := FirstWords(strings.Fields(text)); ok != (want != "") || ok && strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %t", text, got, ok)
		}
	}
	if _, ok := FirstWords(nil); ok {
		t.Error("no words have first words")
	}
}
