package main

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/dispatch"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
)

// simulatedJSON is a call in the output of `policy simulate --json`.
type simulatedJSON struct {
	Call string `json:"call"`
	Turn int    `json:"turn,omitempty"`
	Tool string `json:"tool"`
	// Was is the effect when the call was made; ask if its question was skipped, because nothing
	// changed. Empty: no decision.
	Was     string             `json:"was"`
	Answer  *bool              `json:"answer,omitempty"` // answer to the question, no if nobody was there; nil: no question
	Now     policy.Explanation `json:"now"`
	Changed bool               `json:"changed"`
}

const effectUnknown = "unknown"

func runPolicySimulate(ctx context.Context, a *app, prefix string, files []string) error {
	if err := a.useRuleFiles(files); err != nil {
		return err
	}
	st, id, err := a.findSession(ctx, prefix)
	if err != nil {
		return err
	}
	began, calls, err := session.ReadCalls(st.Events(ctx, id, 0))
	if err != nil {
		return err
	}
	catalog, err := a.findTools(ctx)
	if err != nil {
		return err
	}
	p, err := a.newPolicy(catalog.Catalog, mountsOf(began))
	if err != nil {
		return err
	}
	var out []simulatedJSON
	counts := map[string]int{}
	for _, past := range calls {
		c := past.Call
		if c.Cwd == "" {
			c.Cwd = a.Workspace
		}
		s := simulatedJSON{Call: c.ID, Turn: c.Turn, Tool: c.Tool}
		if past.Decision != nil {
			s.Was, s.Answer = past.Decision.Effect, past.Decision.Answer
			if past.Decision.SkippedQuestion != "" { // nothing runs in a simulation: it cannot know that nothing would change
				s.Was = policy.Ask.String()
			}
		}
		entry, ok := catalog.Find(c.Tool)
		if !ok {
			s.Now = policy.Explanation{Effect: effectUnknown, Reason: "there is no such tool here: without its module it cannot be decided"}
		} else {
			c.Tool = entry.Name
			d := p.Decide(c, entry, policy.Facts{EarlierCalls: counts[entry.Name], Files: dispatch.NamedFiles(p, c, entry)})
			if s.Now = withFlagHints(d.Explain()); d.Effect() != policy.Deny {
				counts[entry.Name]++
			}
		}
		s.Changed = ok && s.Was != "" && s.Was != s.Now.Effect
		out = append(out, s)
	}
	if done, err := printedList(a, out, "the session has no calls"); done {
		return err
	}
	changed := 0
	w := table.New(table.Fixed("TURN"), table.Fixed("TOOL"), table.Fixed("WAS"), table.Fixed("NOW"), table.Fixed("LAYER"), table.Text("RULE"))
	for i, s := range out {
		now := s.Now.Effect
		if s.Changed {
			changed++
			now += " *"
		}
		w.Row(calls[i].Call.Turn, s.Tool, s.Was, now, s.Now.Source, humanize.Clip(cmp.Or(s.Now.Rule, s.Now.Reason), 80))
	}
	if err := a.s.table(w); err != nil {
		return err
	}
	a.s.note("%d calls, %d decided otherwise", len(out), changed)
	return nil
}

func mountsOf(began session.Started) (mounts []policy.Mount) {
	for _, text := range began.Mounts {
		dir, write := strings.CutSuffix(text, ":rw")
		mounts = append(mounts, policy.Mount{Host: strings.TrimSuffix(dir, ":ro"), Write: write, Origin: "the session"})
	}
	return mounts
}

// useRuleFiles uses files in the place of the user's own policy; no files: the policy stays.
func (a *app) useRuleFiles(files []string) error {
	if len(files) == 0 {
		return nil
	}
	var layers []policy.Layer
	for _, l := range a.Layers {
		if l.Source != policy.SourceUser {
			layers = append(layers, l)
		}
	}
	for _, name := range files {
		abs, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		layer, _, err := policyfile.Place{Path: abs, Owner: policyfile.Anybody}.Read(policy.SourceUser)
		if err != nil {
			return &exitErr{code: exitUsage, message: err.Error(), hint: "`stockade policy check " + name + "` finds mistakes"}
		}
		layers = append(layers, layer)
	}
	a.Layers, a.Ceiling = layers, policy.Combine(layers)
	return nil
}
