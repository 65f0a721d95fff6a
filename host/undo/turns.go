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
	Rewound bool     // the conversation was taken back to before it
	// Kept describes the calls whose effects nobody takes back, with the reason, in their order:
	// they have changed files directly, could reach hosts, or are a person's own after the turn.
	// Texts of others may be in it.
	Kept []string
}

// Turns returns the turns of a session, in their order. The error is that of events, or a
// *[session.ChainError].
func Turns(events iter.Seq2[session.Event, error]) ([]Turn, error) {
	l, err := read(events)
	if err != nil {
		return nil, err
	}
	l.from = 1
	var turns []Turn
	for n := 1; n <= l.turns; n++ {
		t := Turn{Number: n, Prompt: l.prompts[n], Rewound: l.rewound[n]}
		for _, c := range l.calls {
			switch {
			case c.after != n || c.undo:
			case c.turn == 0 && len(c.changes) > 0 && c.outcome != outcomeFailed:
				t.Kept = append(t.Kept, "your own call: "+c.summary)
			case c.wroteDirectly:
				t.Kept = append(t.Kept, "changed files directly: "+c.summary)
			case c.reachesHosts:
				t.Kept = append(t.Kept, "could reach the network: "+c.summary)
			}
		}
		if !l.undone[n] {
			t.Files = l.changedFiles(n)
		}
		turns = append(turns, t)
	}
	return turns, nil
}

// changedFiles returns the paths that undoing a turn would put back, or that it has changed if
// it cannot be undone.
func (l *callLog) changedFiles(turn int) (paths []string) {
	p, err := l.planTurn(turn, true)
	switch {
	case err != nil:
		for _, c := range l.calls {
			for _, changes := range c.changes {
				for _, f := range changes.Files {
					if c.turn == turn && !c.undo {
						paths = append(paths, f.Path)
					}
				}
			}
		}
	case p != nil:
		for _, f := range p.files {
			paths = append(paths, f.path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
