package policy

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/tool"
)

// The changes of a command are known once it has run on its stage. Rules about paths apply to
// them, whichever tool that changes files they name.
func TestRulesAboutPathsHoldForWhatACommandChanges(t *testing.T) {
	file := func(kind tool.ChangeKind, name string) tool.Change { return changed(kind, name, 0o644) }
	inside := []tool.Change{file(tool.Modified, "/work/db/migrations/1.sql")}
	beside := []tool.Change{file(tool.Created, "/work/db/migrations.md"), file(tool.Removed, "/work/app.go")}
	out, in := file(tool.Renamed, "/work/1.sql"), file(tool.Renamed, "/work/db/migrations/2.sql")
	out.From, in.From = "/work/db/migrations/1.sql", "/work/2.sql"
	many := make([]tool.Change, 3*maxPathsPerBudget)
	for i := range many {
		many[i] = file(tool.Created, fmt.Sprintf("/work/build/%d", i))
	}
	const of = "(path:path=/work/**/migrations/**)"
	for name, c := range map[string]struct {
		rule    string
		allowed bool // by another rule
		effect  Effect
		by      Source
		changes []tool.Change
		want    Effect
		differs bool
	}{
		"of every tool":            {rule: AnyTool + of, changes: inside, want: Deny, differs: true},
		"of bash":                  {rule: "bash" + of, changes: inside, want: Deny, differs: true},
		"of a tool that writes":    {rule: "file_edit" + of, changes: inside, want: Deny, differs: true},
		"of a tool that reads":     {rule: "file_read" + of, changes: inside, want: Ask},
		"of another tool":          {rule: "deploy" + of, changes: inside, want: Ask},
		"elsewhere":                {rule: AnyTool + of, changes: beside, want: Ask},
		"out of it":                {rule: AnyTool + of, changes: []tool.Change{out}, want: Deny, differs: true},
		"into it":                  {rule: AnyTool + of, changes: []tool.Change{in}, want: Deny, differs: true},
		"one of many":              {rule: AnyTool + of, changes: append(many[:len(many):len(many)], inside...), want: Deny, differs: true},
		"many others":              {rule: AnyTool + of, changes: many, want: Ask},
		"also where it is allowed": {rule: AnyTool + of, allowed: true, changes: inside, want: Deny, differs: true},
		"nothing changed":          {rule: AnyTool + of, changes: nil, want: Ask},
		"asks":                     {rule: AnyTool + of, effect: Ask, allowed: true, changes: inside, want: Ask, differs: true},
		"asks elsewhere":           {rule: AnyTool + of, effect: Ask, allowed: true, changes: beside, want: Allow},
		"but for some":             {rule: "file_write(!path:path=/work/db/**)", changes: inside, want: Ask},
		"not those":                {rule: "file_write(!path:path=/work/db/**)", changes: beside, want: Deny, differs: true},
		"to the letter":            {rule: "file_write(path=app.go)", changes: beside, want: Deny, differs: true},
		"to the letter, absolute":  {rule: "file_write(path=/work/app.go)", changes: beside, want: Deny, differs: true},
		"a pattern":                {rule: `file_write(pattern:path=.*\.sql)`, changes: inside, want: Deny, differs: true},
		"all but one file":         {rule: "file_write(!path=db/migrations/1.sql)", changes: inside, want: Ask},
		"any argument":             {rule: AnyTool + "(path:/*=/work/**/migrations/**)", changes: inside, want: Deny, differs: true},
	} {
		r, err := ParseDenial(c.rule)
		if err != nil {
			t.Fatal(err)
		}
		r.Effect, r.Source = c.effect, SourceAdmin
		opts := staging()
		opts.Rules = []Rule{r}
		if c.allowed {
			opts.Rules = append(opts.Rules, rule(t, "bash(command=touch x)", SourceUser))
		}
		d, differs := New(opts).Decide(call("bash", `{"command":"touch x"}`), entry(t, "bash", execs), Facts{}).DecideChanges(c.changes)
		if d.effect != c.want || differs != c.differs {
			t.Errorf("%s: %s, differs %t: %s", name, d.effect, differs, d.reason)
		}
		if _, err := d.RuleFor(ScopeSession); c.differs && err == nil {
			t.Errorf("%s: an answer for the session is offered against the administrator's rule", name)
		}
	}
}

// An answer of this session wins over rules of the person's own, and over no others.
func TestAnAnswerAboutAChangedPath(t *testing.T) {
	changes := []tool.Change{changed(tool.Modified, "/work/db/1.sql", 0o644)}
	own := rule(t, "file_write(path:path=/work/db/**)", SourceUser)
	own.Effect = Ask
	opts := staging()
	opts.Rules = []Rule{own, rule(t, "bash(command=touch x)", SourceUser)}
	decide := func() Decision {
		d, _ := New(opts).Decide(call("bash", `{"command":"touch x"}`), entry(t, "bash", execs), Facts{}).DecideChanges(changes)
		return d
	}
	d := decide()
	answer, err := d.RuleFor(ScopeSession)
	if d.effect != Ask || err != nil {
		t.Fatal(d.effect, err)
	}
	opts.Rules = append(opts.Rules, answer)
	if d := decide(); d.effect != Allow {
		t.Error(d.effect, d.reason)
	}
}

// The directory bin of a home is asked about wherever the home is.
func TestTheProgramsOfAHomeAreAskedAbout(t *testing.T) {
	for name, want := range map[string]Effect{"/work/bin/ls": Ask, "/work/bin": Ask, "/work/sub/bin/ls": Allow, "/work/binary": Allow} {
		opts := staging()
		opts.Home, opts.Rules = "/work", []Rule{rule(t, "bash below /work", SourceUser)}
		d, _ := New(opts).Decide(call("bash", `{"command":"touch x"}`), entry(t, "bash", execs), Facts{}).DecideChanges([]tool.Change{changed(tool.Created, name, 0o755)})
		if d.effect != want {
			t.Errorf("%s: %s, %s", name, d.effect, d.reason)
		}
	}
}

// Every built-in tool whose path argument names a file that it changes is one of the writers.
func TestTheWritersAreTheBuiltInToolsThatChangeFiles(t *testing.T) {
	gueststest.Need(t)
	data, err := os.ReadFile("../../guests/dist/index.json")
	if err != nil {
		t.Fatal(err)
	}
	var modules []struct {
		Manifest struct {
			Tools []struct {
				Name         string
				Capabilities struct{ Files string }
			}
		}
	}
	if err := json.Unmarshal(data, &modules); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range modules {
		for _, tool := range m.Manifest.Tools {
			if tool.Capabilities.Files == "write" {
				names = append(names, tool.Name)
			}
		}
	}
	if slices.Sort(names); !slices.Equal(names, writers) {
		t.Errorf("%q change files", names)
	}
}
