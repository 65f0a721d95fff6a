package undo

import (
	"iter"
	"slices"

	"github.com/stockade-dev/stockade/host/session"
)

// Turn is a turn of a session, for a person who goes back to before it.
type Turn struct {
	Number  int
	Prompt  string
	Files   []string // paths that its calls have changed and that are not put back, sorted
	Others  []string // paths that a person's calls after it have changed, /undo and /redo among them
	Rewound bool     // the conversation was taken back to before it
	// Kept describes the calls whose effects nobody takes back, with the reason, in their order. The
	// descriptions may hold texts of the model.
	Kept []string
}

// Turns returns the turns of a session, in their order, without those that the conversation has
// lost and whose files are put back; the turn before has their Others. The error is that of
// events, or a *[session.ChainError].
func Turns(events iter.Seq2[session.Event, error]) ([]Turn, error) {
	l, err := read(events)
	if err != nil {
		return nil, err
	}
	l.from = 1
	var turns []Turn
	for n := 1; n <= l.turns; n++ {
		t := Turn{Number: n, Prompt: l.prompts[n], Rewound: l.rewound[n]}
		p, err := l.planTurn(n, true)
		if p != nil && !l.undone[n] {
			for _, f := range p.files {
				t.Files = append(t.Files, f.path)
			}
		}
		for _, c := range l.calls {
			own := c.turn == 0 && len(c.changes) > 0 && c.outcome != outcomeFailed
			for _, changes := range c.changes {
				for _, f := range changes.Files {
					if c.after == n && own {
						t.Others = append(t.Others, f.Path)
					} else if c.turn == n && !c.undo && err != nil && !l.undone[n] { // it cannot be undone
						t.Files = append(t.Files, f.Path)
					}
				}
			}
			switch {
			case c.after != n || c.undo:
			case own:
				t.Kept = append(t.Kept, "your own call: "+c.summary)
			case c.wroteDirectly:
				t.Kept = append(t.Kept, "changed files directly: "+c.summary)
			case c.reachesHosts:
				t.Kept = append(t.Kept, "could reach the network: "+c.summary)
			}
		}
		slices.Sort(t.Files)
		t.Files = slices.Compact(t.Files)
		if last := len(turns) - 1; !t.Rewound || len(t.Files) > 0 {
			turns = append(turns, t)
		} else if last >= 0 {
			turns[last].Others = append(turns[last].Others, t.Others...)
		}
	}
	return turns, nil
}
