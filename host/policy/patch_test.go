package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/tool"
)

// patches returns a tool that applies patches.
func patches(t testing.TB) *tool.Entry {
	t.Helper()
	schema, err := tool.CompileSchema(json.RawMessage(`{"type":"object","properties":{"patch":{"type":"string"},"hashes":{"type":"object"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	e := entry(t, "apply_patch", writes)
	e.Schema, e.Content = schema, &tool.Content{Patch: "patch", Hash: "hashes"}
	return e
}

// patched returns a call with these sections of a patch.
func patched(sections ...string) tool.Call {
	text := "*** Begin Patch\n" + strings.Join(sections, "\n") + "\n*** End Patch"
	return call("apply_patch", string(tool.Marshal(map[string]string{"patch": text})))
}

const (
	updatesA = "*** Update File: src/a.go\n@@\n-x\n+y"
	movesA   = "*** Update File: src/a.go\n*** Move to: doc/a.go"
	addsB    = "*** Add File: ./src/b.go\n+x"
	addsUp   = "*** Add File: doc/../src/b.go\n+x"
	deletesC = "*** Delete File: /work/doc/c.md"
)

func TestRulesAboutPathsHoldForThoseOfAPatch(t *testing.T) {
	const in = "(path:path=/work/src/**)"
	tests := map[string]struct {
		rule Rule
		call tool.Call
		want Effect
	}{
		"allowed where all are":           {rule(t, "apply_patch"+in, SourceUser), patched(updatesA, addsB), Allow},
		"not where one is elsewhere":      {rule(t, "apply_patch"+in, SourceUser), patched(updatesA, deletesC), Ask},
		"not where a link may lead":       {rule(t, "apply_patch"+in, SourceUser), patched(updatesA, addsUp), Ask},
		"not where one moves out":         {rule(t, "apply_patch"+in, SourceUser), patched(movesA), Ask},
		"not where it cannot be read":     {rule(t, "apply_patch"+in, SourceUser), call("apply_patch", `{"patch":"*** Update File: src/a.go"}`), Ask},
		"not where there is none":         {rule(t, "apply_patch"+in, SourceUser), call("apply_patch", `{}`), Ask},
		"allowed by its very name":        {rule(t, "apply_patch(path=src/a.go)", SourceUser), patched(updatesA), Allow},
		"not by the name of one of two":   {rule(t, "apply_patch(path=src/a.go)", SourceUser), patched(updatesA, deletesC), Ask},
		"denied where one is":             {deny(rule(t, "apply_patch"+in, SourceAdmin)), patched(deletesC, addsB), Deny},
		"denied by way of ..":             {deny(rule(t, "apply_patch"+in, SourceAdmin)), patched(addsUp), Deny},
		"denied where one moves away":     {deny(rule(t, "apply_patch"+in, SourceAdmin)), patched(movesA), Deny},
		"denied where one moves there":    {deny(rule(t, "apply_patch(path:path=/work/doc/**)", SourceAdmin)), patched(movesA), Deny},
		"asked where it cannot be read":   {deny(rule(t, "apply_patch"+in, SourceAdmin)), call("apply_patch", `{"patch":"*** Update File: src/a.go"}`), Ask},
		"denied by a rule for every tool": {deny(Rule{Tool: AnyTool, Where: rule(t, "x"+in, SourceAdmin).Where, Source: SourceAdmin}), patched(addsB), Deny},
		"denied by a pointer":             {deny(rule(t, "apply_patch(path:/path=/work/src/**)", SourceAdmin)), patched(addsB), Deny},
		"denied by any argument":          {deny(rule(t, "apply_patch(path:/*=/work/src/**)", SourceAdmin)), patched(addsB), Deny},
		"asked by another case":           {deny(rule(t, "apply_patch(path:Path=/work/src/**)", SourceAdmin)), patched(addsB), Ask},
		"denied but for some":             {deny(rule(t, "apply_patch(!path:path=/work/src/**)", SourceAdmin)), patched(updatesA, deletesC), Deny},
		"not denied but for those":        {deny(rule(t, "apply_patch(!path:path=/work/src/**)", SourceAdmin)), patched(updatesA, addsB), Ask},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := New(Options{Mounts: inWork, Rules: []Rule{tt.rule}})
			if d := p.Decide(tt.call, patches(t), Facts{}); d.Effect() != tt.want {
				t.Errorf("%v by %s: %s", d.Effect(), d.Rule(), d.Reason())
			}
		})
	}
}

// A patch of a closed path, or of a path in no mount, is denied before its content is
// checked.
func TestAPatchOfWhatIsClosed(t *testing.T) {
	for name, section := range map[string]string{
		"a hook":                  "*** Add File: .git/hooks/pre-commit\n+x",
		"a hook by a long name":   "*** Add File: a/../.GIT/hooks/./x\n+x",
		"something that moves in": "*** Update File: src/a.go\n*** Move to: .git/config",
		"something deleted":       "*** Delete File: .git/config",
		"our configuration":       "*** Update File: agent.toml\n@@\n-x",
		"outside":                 "*** Add File: ../outside\n+x",
		"outside, absolute":       "*** Update File: /etc/passwd\n@@\n-x",
	} {
		t.Run(name, func(t *testing.T) {
			c, e := patched(updatesA, section), patches(t)
			facts := Facts{Files: PathArgs(c, e)}
			for i := range facts.Files { // as they are found where there are no links
				facts.Files[i].Path = facts.Files[i].Name
			}
			p := New(Options{Mounts: inWork, Rules: []Rule{rule(t, "apply_patch", SourceFlag)}})
			if d := p.Decide(c, e, facts); d.Effect() != Deny {
				t.Errorf("%v: %s", d.Effect(), d.Reason())
			}
		})
	}
}

func TestAQuestionNamesTheFilesOfAPatch(t *testing.T) {
	e := patches(t)
	got := New(Options{Mounts: inWork}).Decide(patched(movesA, addsB, deletesC), e, Facts{}).Question().Paths
	if want := []string{"/work/src/a.go", "/work/doc/c.md", "/work/doc/a.go", "/work/src/b.go"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	var many []string
	for i := range 128 {
		many = append(many, fmt.Sprintf("*** Update File: a%d\n*** Move to: b%d", i, i))
	}
	if n := len(PathArgs(patched(many...), e)); n != 256 {
		t.Errorf("%d paths of the largest patch", n)
	}
	if d := lintCondition(rule(t, "apply_patch(path=a)", SourceUser).Where[0], e.Name, []*tool.Entry{e}); d != "" {
		t.Errorf("a rule about the paths: %s", d)
	}
}
