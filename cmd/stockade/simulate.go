package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/dispatch"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// simulated is one call in the output of `policy simulate --json`.
type simulated struct {
	Call    string             `json:"call"`
	Turn    int                `json:"turn,omitempty"`
	Tool    string             `json:"tool"`
	Was     string             `json:"was"`              // what was decided then; empty if nothing was
	Answer  *bool              `json:"answer,omitempty"` // what a person said to it
	Now     policy.Explanation `json:"now"`
	Changed bool               `json:"changed"`
}

// unknown is the effect of what cannot be decided.
const unknown = "unknown"

// pastCall is a call as the log has it.
type pastCall struct {
	call     tool.Call
	decision *session.Decision
}

// pastCalls reads the calls of a session, in their order, and the mounts that it
// began with.
func pastCalls(ctx context.Context, st session.Store, id, work string) (out []*pastCall, mounts []policy.Mount, _ error) {
	byID := map[string]*pastCall{}
	for e, err := range st.Events(ctx, id, 0) {
		if err != nil {
			return nil, nil, err
		}
		switch e.Type {
		case session.TypeSessionStarted:
			var s session.Started
			if json.Unmarshal(e.Body, &s) == nil && s.Workspace != "" {
				work = s.Workspace
			}
			for _, text := range s.Mounts {
				dir, write := strings.CutSuffix(text, ":rw")
				mounts = append(mounts, policy.Mount{Host: strings.TrimSuffix(dir, ":ro"), Write: write, Named: "the session"})
			}
		case session.TypeToolCall:
			m, ok := e.Message()
			var data llm.CallData
			if !ok || json.Unmarshal(m.Data, &data) != nil {
				continue // its body was deleted
			}
			p := &pastCall{call: tool.Call{
				ID: e.Call, Tool: data.Function.Name, Args: json.RawMessage(data.Function.Arguments), Caller: tool.CallerAgent,
				Cwd: work, Turn: e.Turn, Step: e.Step,
			}}
			if e.Turn == 0 {
				p.call.Caller = tool.CallerPerson
			}
			out, byID[e.Call] = append(out, p), p
		case session.TypeDecision:
			var d session.Decision
			if p := byID[e.Call]; p != nil && json.Unmarshal(e.Body, &d) == nil {
				p.decision = &d
			}
		case session.TypeCallIntended:
			var i session.Intent
			if p := byID[e.Call]; p != nil && json.Unmarshal(e.Body, &i) == nil {
				p.call.Cwd, p.call.Caller = i.Cwd, tool.Caller(i.Caller)
			}
		}
	}
	return out, mounts, nil
}

func runPolicySimulate(ctx context.Context, a *app, prefix string, files []string) error {
	if err := a.otherRules(files); err != nil {
		return err
	}
	st, err := a.store(ctx)
	if err != nil {
		return err
	}
	id, err := st.Resolve(ctx, prefix)
	if err != nil {
		return err
	}
	calls, mounts, err := pastCalls(ctx, st, id, a.work)
	if err != nil {
		return err
	}
	catalog, err := a.catalog()
	if err != nil {
		return err
	}
	p, err := a.policy(catalog, mounts)
	if err != nil {
		return err
	}
	out := []simulated{}
	counts := map[string]int{}
	for _, c := range calls {
		s := simulated{Call: c.call.ID, Turn: c.call.Turn, Tool: c.call.Tool}
		if c.decision != nil {
			s.Was, s.Answer = c.decision.Effect, c.decision.Answer
		}
		entry, ok := catalog.Find(c.call.Tool)
		if !ok {
			s.Now = policy.Explanation{Effect: unknown, Reason: "it is no built-in tool: without its module it cannot be decided"}
		} else {
			c.call.Tool = entry.Name
			d := p.Decide(c.call, entry, policy.Facts{Earlier: counts[entry.Name], Files: dispatch.NamedFiles(p, c.call, entry)})
			if s.Now = explained(d.Explain()); d.Effect() != policy.Deny {
				counts[entry.Name]++
			}
		}
		s.Changed = ok && s.Was != "" && s.Was != s.Now.Effect
		out = append(out, s)
	}
	if a.flags.json {
		return printJSON(a.s, out)
	}
	changed := 0
	w := tabwriter.NewWriter(a.s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TURN\tTOOL\tWAS\tNOW\tLAYER\tRULE")
	for i, s := range out {
		now := s.Now.Effect
		if s.Changed {
			changed++
			now += " *"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", calls[i].call.Turn, terminal.Line(s.Tool), terminal.Line(s.Was), now, s.Now.Source, clip(terminal.Line(cmp.Or(s.Now.Rule, s.Now.Reason)), 80))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	a.s.note("%d calls, %d decided otherwise", len(out), changed)
	return nil
}

// otherRules puts files in the place of the user's own policy.
func (a *app) otherRules(files []string) error {
	if len(files) == 0 {
		return nil
	}
	var layers []policy.Layer
	for _, l := range a.layers {
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
	a.layers, a.ceiling = layers, policy.Meet(layers)
	return nil
}
