package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/tool"
)

var (
	allQuestions  = flag.Bool("questions", false, "count the questions of all everyday commands: make test-questions")
	questionsInto = flag.String("questions-into", "", "for the test itself: the file to which the questions of this tier are written")
)

// questionsTable has the expected questions; UPDATE_QUESTIONS=1 with -questions writes it.
const questionsTable = "testdata/questions.txt"

// A usualCommand is run by the tool bash in a fresh workspace, under the default
// configuration.
type usualCommand struct {
	setup   string // run without stockade, before command
	command string
	quick   bool // part of make test, too
}

const (
	usualIdentity = "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b; "
	usualRepo     = "git init -q -b main . && echo one > a.txt && mkdir -p src/lib && seq 20 > src/lib/n.txt && echo 'int x;' > src/x.c && git add . && git commit -qm one"
	usualBranch   = usualRepo + " && git checkout -qb b && echo b > b.txt && git add . && git commit -qm b && git checkout -q main && echo c > c.txt && git add . && git commit -qm c"
	usualModule   = "printf 'module example.com/p\\n\\ngo 1.20\\n' > go.mod && printf 'package main\\n\\nfunc two() int { return 2 }\\n\\nfunc main() { println(two()) }\\n' > main.go && " +
		"printf 'package main\\n\\nimport \"testing\"\\n\\nfunc TestTwo(t *testing.T) {\\n\\tif two() != 2 {\\n\\t\\tt.Fail()\\n\\t}\\n}\\n' > main_test.go"
	usualPackage = `printf '{"name":"w","version":"1.0.0","scripts":{"hello":"echo hello","build":"mkdir -p dist && echo x > dist/out"}}\n' > package.json && mkdir d && echo '{"name":"d","version":"1.0.0"}' > d/package.json`
	usualC       = "printf 'int main(void) { return 0; }\\n' > a.c && printf 'a: a.c\\n\\tcc -o a a.c\\n' > Makefile"
)

// usualCommands are commands that people run every day.
var usualCommands = []usualCommand{
	{usualRepo, "git status", true},
	{usualBranch, "git log --oneline --graph --all", true},
	{usualRepo + " && echo x >> a.txt", "git diff", true},
	{usualBranch, "git show b --stat", false},
	{usualRepo, "git blame a.txt", false},
	{"", "git init -q .", true},
	{usualRepo, "echo x > new && git add new", true},
	{usualRepo, "echo x >> a.txt && git commit -qam two", true},
	{usualRepo, "echo x >> a.txt && git commit -qa --amend -m one", false},
	{usualRepo, "git checkout -qb new", false},
	{usualBranch, "git checkout -q b", true},
	{usualBranch, "git merge -q --no-edit b", false},
	{usualBranch, "git rebase -q b", true},
	{usualBranch, "git cherry-pick b", false},
	{usualRepo + " && echo x >> a.txt", "git stash -q", true},
	{usualRepo + " && echo x >> a.txt && git stash -q", "git stash pop -q", false},
	{usualBranch, "git reset -q --hard HEAD~1", true},
	{usualBranch, "git branch -D b", false},
	{usualRepo, "git tag -a v1 -m v1", false},
	{usualBranch, "git gc -q", false},
	{usualRepo, "git mv a.txt b.txt && git rm -q src/x.c", false},
	{usualRepo, "git worktree add -q w -b w", false},
	{usualRepo, "git config user.name Ada", true},
	{usualRepo + " && printf 'TOKEN=a-long-token-of-nobody\\n' > .env && git add -f .env && git commit -qm env && git rm -q .env && git commit -qm gone", "git log -p", true},
	{usualRepo, "git fetch -q https://example.com/x", true},

	{usualModule, "go build ./...", true},
	{usualModule, "go build -o p .", false},
	{usualModule, "go test ./...", false},
	{usualModule, "go vet ./... && gofmt -l .", false},
	{usualModule, "go mod tidy", false},
	{usualModule, "go run .", false},

	{usualPackage, "npm run -s hello", false},
	{usualPackage, "npm run -s build", false},
	{usualPackage, "npm install --silent ./d", false},
	{usualPackage, "npm pkg set scripts.test=true", false},
	{usualPackage, "node -e 'console.log(1)'", false},

	{"echo 'print(1)' > a.py", "python3 a.py", true},
	{"printf 'import unittest\\nclass T(unittest.TestCase):\\n    def test(self): pass\\n' > test_a.py", "python3 -m unittest -q", false},
	{"", "python3 -m venv --without-pip v", false},
	{"echo '{\"a\": [1, 2]}' > a.json", "python3 -m json.tool a.json b.json", false},

	{usualC, "make -s", true},
	{usualC + " && make -s", "make -q", false},
	{usualC, "cc -fsyntax-only a.c", true},
	{usualC + " && printf 'cmake_minimum_required(VERSION 3.10)\\nproject(p C)\\nadd_executable(a a.c)\\n' > CMakeLists.txt", "cmake -B b && cmake --build b", false},
	{"cargo init -q --vcs none --name p .", "cargo build -q", false},
	{"cargo init -q --vcs none --name p .", "cargo test -q", false},

	{"seq 9 > a", "ls -la && cat a && wc -l a", true},
	{usualRepo, "grep -rn one . && find . -name '*.c'", true},
	{"seq 9 > a", "sed -i s/3/three/ a", true},
	{"seq 9 > a", "mv a b && cp b c", true},
	{"mkdir -p d/e && seq 9 > d/e/f", "rm -r d", true},
	{"", "mkdir -p d/e && touch d/e/f", true},
	{"echo 'echo run' > a.sh", "chmod +x a.sh && ./a.sh", true},
	{"mkdir d && seq 9 > d/f", "tar czf d.tgz d && tar tzf d.tgz", false},
	{"mkdir d && seq 9 > d/f && zip -qr d.zip d && rm -r d", "unzip -q d.zip", false},
	{"echo '{\"a\": [1, 2]}' > a.json", "jq .a a.json", true},
	{"", "sqlite3 a.db 'create table t(x)'", false},
	{"seq 9 > a && sed s/3/x/ a > b && ! diff a b > p", "patch -s a p", false},
	{"mkdir .vscode && echo '{}' > .vscode/settings.json", "echo '{\"a\": 1}' > .vscode/settings.json", true},
	{"", "curl -sf https://example.com", true},
}

// elsewhere matches a path of this machine in a reason.
var elsewhere = regexp.MustCompile(`"/[^"]*"`)

// denied marks the rule that denies a command, among the questions about it.
const denied = "denied: "

// questions counts the questions, without the rules that deny.
func questions(why []string) int {
	return len(slices.DeleteFunc(slices.Clone(why), func(w string) bool { return strings.HasPrefix(w, denied) }))
}

// countingYes says yes to each question once, and keeps why each was put.
type countingYes struct{ why []string }

func (c *countingYes) Approve(_ context.Context, q policy.Question) func() (policy.Answer, error) {
	c.why = append(c.why, q.Reason)
	return func() (policy.Answer, error) {
		return policy.Answer{Question: q.ID, Allow: true, Scope: policy.ScopeOnce, By: "counting"}, nil
	}
}

// questionsOf returns the questions about each command, and the tier of this machine.
func questionsOf(t *testing.T) (policy.Tier, map[string][]string) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	before := adminPolicyPlace
	adminPolicyPlace = func() policyfile.Place {
		return policyfile.Place{Path: filepath.Join(own, "policy.toml"), Root: own, Owner: os.Getuid()}
	}
	defer func() { adminPolicyPlace = before }()
	env := map[string]string{"HOME": home, "PATH": os.Getenv("PATH")}
	for _, name := range []string{"CONFIG", "DATA", "STATE", "CACHE"} {
		env["XDG_"+name+"_HOME"] = filepath.Join(own, name)
	}
	a := &app{s: &stdio{in: os.Stdin, out: io.Discard, err: io.Discard, env: func(k string) string { return env[k] }}, redactor: new(redact.Redactor)}
	a.flags.dir, a.flags.quiet = t.TempDir(), true
	if err := a.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer a.close()
	catalog, err := registry.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string][]string{}
	for _, c := range usualCommands {
		if c.quick || *allQuestions {
			asked[c.command] = askedOf(t, a, catalog, c)
		}
	}
	return a.tier(), asked
}

// askedOf returns the reasons of the questions about one command, in a new workspace.
func askedOf(t *testing.T, a *app, catalog *tool.Catalog, c usualCommand) []string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	set := exec.Command("bash", "-c", usualIdentity+c.setup)
	set.Dir = dir
	if out, err := set.CombinedOutput(); err != nil {
		t.Fatalf("set up for %s: %v\n%s", c.command, err, out)
	}
	a.Workspace = dir
	mounts, err := a.workspaceMounts()
	if err != nil {
		t.Fatal(err)
	}
	grants, err := a.policyOptions(catalog, mounts)
	if err != nil {
		t.Fatal(err)
	}
	yes := new(countingYes)
	s, err := a.door().Open(t.Context(), door.SessionOptions{Workspace: dir, Catalog: catalog, Policy: grants, Approver: yes})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	result, err := s.Call(t.Context(), tool.Call{ID: "1", Tool: "bash", Args: tool.Marshal(map[string]any{"command": usualIdentity + c.command, "timeout_seconds": 300}), Caller: tool.CallerAgent, Cwd: dir})
	for i, why := range yes.why {
		yes.why[i] = elsewhere.ReplaceAllString(strings.ReplaceAll(why, dir, "WORKSPACE"), `"ELSEWHERE"`)
	}
	switch {
	case err == nil && result.Err == nil:
	case err == nil && result.Err.Code == tool.CodeDenied:
		yes.why = append(yes.why, denied+result.Err.Rule)
	default:
		t.Errorf("%s: %s, %v", c.command, result.Envelope(), err)
	}
	return yes.why
}

// Everyday commands lead to the questions in a table, and no others, at tiers 3 and 1. They
// run through policy, dispatch, sandbox, jail and stage.
func TestTheQuestionsOfEverydayCommands(t *testing.T) {
	gueststest.Need(t)
	if *questionsInto != "" { // at tier 1
		tier, asked := questionsOf(t)
		if tier != 1 {
			t.Errorf("tier %d", tier)
		}
		if err := os.WriteFile(*questionsInto, tool.Marshal(asked), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	into := filepath.Join(t.TempDir(), "questions")
	lower := exec.Command(os.Args[0], "-test.run", "^TestTheQuestionsOfEverydayCommands$", "-questions-into", into, fmt.Sprintf("-questions=%t", *allQuestions))
	lower.Env = append(os.Environ(), "TEST_WITHOUT=namespaces")
	var said bytes.Buffer
	lower.Stdout, lower.Stderr = &said, &said
	if err := lower.Start(); err != nil {
		t.Fatal(err)
	}
	tier, three := questionsOf(t)
	if err := lower.Wait(); err != nil || tier != policy.MaxTier {
		t.Fatalf("tier %d; at tier 1: %v\n%s", tier, err, said.Bytes())
	}
	var one map[string][]string
	if data, err := os.ReadFile(into); err != nil || json.Unmarshal(data, &one) != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	compareQuestions(t, three, one)
}

// compareQuestions compares the questions at two tiers with the table.
func compareQuestions(t *testing.T, three, one map[string][]string) {
	t.Helper()
	table, err := os.ReadFile(questionsTable)
	if err != nil && os.Getenv("UPDATE_QUESTIONS") == "" {
		t.Fatal(err)
	}
	before := map[string]string{}
	for row := range strings.SplitSeq("\n"+string(table), "\n$ ") {
		command, _, _ := strings.Cut(row, "\n")
		before[command] = "$ " + strings.TrimSuffix(row, "\n") + "\n"
	}
	var all strings.Builder
	for _, c := range usualCommands {
		if _, ran := three[c.command]; !ran {
			continue
		}
		var row strings.Builder
		fmt.Fprintf(&row, "$ %s\n  tier 3: %d, tier 1: %d\n", c.command, questions(three[c.command]), questions(one[c.command]))
		for _, at := range []struct {
			tier int
			why  []string
		}{{3, three[c.command]}, {1, one[c.command]}} {
			for _, why := range at.why {
				fmt.Fprintf(&row, "    at %d: %s\n", at.tier, why)
			}
		}
		if diff := cmp.Diff(before[c.command], row.String()); diff != "" && os.Getenv("UPDATE_QUESTIONS") == "" {
			t.Errorf("it asks something else (-table +now):\n%s", diff)
		}
		all.WriteString(row.String())
	}
	if os.Getenv("UPDATE_QUESTIONS") != "" && *allQuestions {
		if err := os.WriteFile(questionsTable, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
