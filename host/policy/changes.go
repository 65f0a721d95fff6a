package policy

import "github.com/stockade-dev/stockade/host/tool"

// Changes says what becomes of what a command changes in files.
type Changes string

// The ways, the widest first. The zero value is [ChangesDirect].
const (
	ChangesDirect Changes = "direct" // the host's files are changed
	ChangesStaged Changes = "staged" // they are when it is known what it is, and a yes is given to that
	ChangesNone   Changes = "none"   // it cannot change any
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
		d.first = "bash.changes says so"
	}
	if d.first != "" && d.changes == ChangesStaged {
		d.changes = ChangesDirect
	}
	if d.first == "" && p.askFirst {
		d.first = "bash.ask says so"
	}
}
