package policy

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/policy/paths"
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
	if bound == nil || c == "" || slices.Index(ranked, c) <= int(bound.Value) {
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
// apart. Chosen is what the rule says that decides; empty: nothing.
func (p *Policy) stages(d *Decision, chosen Changes) {
	c := d.entry.Capabilities
	if c.Exec == "" {
		return
	}
	d.changes = cmp.Or(chosen.under(p.ceiling.Changes), p.changes)
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
		d.first = d.share.staging()
	case d.changes == ChangesDirect:
		d.first = "it changes files while it runs"
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

// within is the decision about a call that has changed these, none of them special:
// a rule that names the directory allows it.
func (d Decision) within(changes []tool.Change) (_ Decision, differs bool) {
	var names []string
	for _, c := range changes {
		names = append(names, c.Path)
		if c.From != "" {
			names = append(names, c.From)
		}
	}
	args := d.args()
	p := d.policy
	p.mu.RLock()
	defer p.mu.RUnlock()
	var best *Rule
	p.candidates(&d, args, func(_ int, r *Rule) {
		if r.Below == "" || best != nil && rank(best.Source) <= rank(r.Source) && (d.flagged || r.Source != SourceFlag) {
			return
		}
		dir := paths.Absolute(r.Below, d.call.Cwd)
		outside := func(name string) bool { return !paths.In(name, dir) }
		if r.counts(&d, args) == match.Yes && p.holds(&r.Bound, d.entry) && !slices.ContainsFunc(names, outside) {
			best, d.flagged = r, d.flagged || r.Source == SourceFlag
		}
	})
	if best != nil {
		d.decided(Allow, best.decider(), fmt.Sprintf("the %s rule %q says allow, and it has changed nothing else", best.Source, best))
		return d, true
	}
	if d.entry.Capabilities.Exec != "" {
		d.below = d.share.dirOf(changes)
	}
	return d, false
}

// dirOf is the directory that an answer can name for all of these changes; empty if
// there is none.
func (s *share) dirOf(changes []tool.Change) string {
	dir := ""
	for _, c := range changes {
		isDir := c.Kind == tool.DirectoryCreated || c.Kind == tool.DirectoryRemoved || c.After != nil && c.After.Mode.IsDir()
		for _, name := range []string{c.Path, c.From} {
			switch {
			case name == "":
				continue
			case !isDir:
				name = filepath.Dir(name)
			}
			if dir == "" {
				dir = name
			}
			for !paths.In(name, dir) {
				if dir == filepath.Dir(dir) {
					return ""
				}
				dir = filepath.Dir(dir)
			}
		}
	}
	// What git writes is in directories that have no meaning by themselves.
	if i := strings.Index(dir+"/", "/.git/"); i >= 0 {
		dir = dir[:i+len("/.git")]
	}
	again, err := ParseRule(Rule{Effect: Allow, Tool: bashTool, Below: dir}.String())
	if _, seen := s.sees(dir); !seen || err != nil || again.Below != dir {
		return ""
	}
	return dir
}
