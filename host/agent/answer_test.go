package agent

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

func TestAnAnswerHasItsFormOrTheTurnFails(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"of":{"enum":["a","b"]}},"required":["n"]}`)
	compiled, err := tool.CompileSchema(schema)
	if err != nil {
		t.Fatal(err)
	}
	const good = `{"n":1}`
	answered := session.TurnEnded{Reason: session.EndAnswered}
	never := session.TurnEnded{Reason: session.EndLimit, Limit: OutputSchema}
	cut := reply{deltas: []llm.Delta{{Text: `{"n":`}, {Finish: llm.FinishLength}}}
	for name, c := range map[string]struct {
		replies []reply
		want    session.TurnEnded
		calls   int
	}{
		"at once":                      {[]reply{text(good)}, answered, 0},
		"with blanks around":           {[]reply{text("\n " + good + "\n")}, answered, 0},
		"after a call":                 {[]reply{calls("a ls {}"), text(good)}, answered, 1},
		"that looks like a call":       {[]reply{text(`{"n":1,"name":"ls","arguments":{}}`)}, answered, 0},
		"at the second try":            {[]reply{text("It is 1."), text(good)}, answered, 0},
		"in a code fence, then alone":  {[]reply{text("```json\n" + good + "\n```"), text(good)}, answered, 0},
		"not at all":                   {[]reply{text("It is 1."), text("It is 1!")}, never, 0},
		"of another type":              {[]reply{text(`{"n":"1"}`), text(`[1]`)}, never, 0},
		"twice":                        {[]reply{text(good + good), text(`{"n":1,"n":2}`)}, never, 0},
		"in other letters":             {[]reply{text(`{"n":1,"of":"A"}`), text(`{"n":1,"of":"B"}`)}, never, 0},
		"empty":                        {[]reply{text(""), text("")}, never, 0},
		"calls where none are offered": {[]reply{text("no"), calls("a ls {}")}, never, 0},
		"cut":                          {[]reply{cut}, session.TurnEnded{Reason: session.EndCut, Limit: "length"}, 0},
		"in the last step":             {[]reply{calls("a ls {}"), calls("b ls {}"), text(good)}, answered, 2},
		"not in the last step":         {[]reply{calls("a ls {}"), calls("b ls {}"), text("no"), text(good)}, session.TurnEnded{Reason: session.EndLimit, Limit: "max_tool_turns"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Options{MaxSteps: 3, Answer: &AnswerForm{schema, compiled}}, c.replies...)
			_, end := b.run(t.Context(), "go")
			if (end.Error != "") != (end.Limit == OutputSchema) {
				t.Errorf("the error is %q", end.Error)
			}
			c.want.Steps, c.want.Calls = len(c.replies), c.calls
			end.DurationMS, end.Usage, end.Error = 0, llm.Usage{}, ""
			if diff := cmp.Diff(c.want, end); diff != "" {
				t.Error(diff)
			}
			for i, r := range b.model.asked {
				if again := i > c.calls; again != (r.Schema != nil) || again && r.Tools != nil {
					t.Errorf("request %d has the schema %s and %d tools", i+1, r.Schema, len(r.Tools))
				}
			}
			b.checkHistory()
		})
	}
}
