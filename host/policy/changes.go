package policy

import (
	"slices"
	"strconv"

	"github.com/stockade-dev/stockade/host/tool"
)

// Changes says what becomes of what a command changes in files.
type Changes string

// The ways, the widest first. The zero value is [ChangesDirect].
const (
	ChangesDirect Changes = "direct" // the host's files are changed
	ChangesStaged Changes = "staged" // they are when it is known what it is, and a yes is given to that
	ChangesNone   Changes = "none"   // it cannot change any
)

// ranked are all of them, the narrowest first.
var ranked = []Changes{ChangesNone, ChangesStaged, ChangesDirect}

// AtMost is the bound of a layer that permits these and what is narrower.
func (c Changes) AtMost(from From) *Most {
	return &Most{Value: int64(slices.Index(ranked, c)), Text: strconv.Quote(string(c)), From: from}
}

// under is the narrower of it and a bound.
func (c Changes) under(bound *Most) Changes {
	if bound == nil || slices.Index(ranked, c) <= int(bound.Value) {
		return c
	}
	return ranked[bound.Value]
}

// The keys of agent.toml and of policy.toml.
const (
	ChangesKey = "bash.changes"
	AskKey     = "bash.ask"
)

// stages decides what becomes of what a process changes, and whether it can run
// before the answer: one that reaches nothing but files, whose changes are kept
// apart.
func (p *Policy) stages(d *Decision) {
	c := d.entry.Capabilities
	if c.Exec == "" {
		return
	}
	d.changes = p.changes
	switch {
	case d.online:
		d.first = "it reaches the network"
	case len(c.Secrets) > 0:
		d.first = "it uses secrets"
	case c.Files == tool.FilesWrite:
		d.first = "its tool changes files by itself, too"
	case p.tier() < TierConfined:
		d.first = "what it does is not kept apart in " + p.tier().String()
	case d.changes == ChangesStaged:
		d.first = p.staging()
	case d.changes == ChangesDirect:
		d.first = ChangesKey + ` is "direct"`
	}
	if d.first != "" && d.changes == ChangesStaged {
		d.changes = ChangesDirect
	}
	if d.first == "" && p.askFirst {
		d.first = AskKey + ` is "always"`
		if c := p.ceiling.AskFirst; len(c) > 0 {
			d.first += ": " + c[0].From.String()
		}
	}
}
