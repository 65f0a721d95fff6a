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

// ChangesMode says what becomes of what a command changes in files.
type ChangesMode string

// The ways, the widest first. The zero value is [ChangesDirect].
const (
	ChangesDirect ChangesMode = "direct" // the host's files are changed
	ChangesStaged ChangesMode = "staged" // they are when it is known what it is, and a yes is given to that
	ChangesNone   ChangesMode = "none"   // it cannot change any
)

// changesModes are all of them, the narrowest first.
var changesModes = []ChangesMode{ChangesNone, ChangesStaged, ChangesDirect}

// AtMost is the bound of a layer that permits these and what is narrower.
func (c ChangesMode) AtMost(from Provenance) *Limit {
	return &Limit{Value: int64(slices.Index(changesModes, c)), Text: strconv.Quote(string(c)), From: from}
}

// under is the narrower of it and a bound.
func (c ChangesMode) under(bound *Limit) ChangesMode {
	if bound == nil || c == "" || slices.Index(changesModes, c) <= int(bound.Value) {
		return c
	}
	return changesModes[bound.Value]
}

// The keys of agent.toml and of policy.toml.
const (
	ChangesKey = "bash.changes"
	AskKey     = "bash.ask"
)

// decideStaging decides what becomes of what a process changes, and whether it can run
// before the answer: one that reaches nothing but files, whose changes are kept
// apart. Chosen is what the rule says that decides; empty: nothing.
func (p *Policy) decideStaging(d *Decision, chosen ChangesMode) {
	c := d.entry.Capabilities
	if c.Exec == "" {
		return
	}
	d.changes = cmp.Or(chosen.under(p.ceiling.Changes), p.changes)
	switch {
	case d.execNetwork:
		d.askFirstReason = "it reaches the network"
	case len(c.Secrets) > 0:
		d.askFirstReason = "it uses secrets"
	case c.Files == tool.FilesWrite:
		d.askFirstReason = "its tool changes files by itself, too"
	case p.tier() < TierConfined:
		d.askFirstReason = "what it does is not kept apart in " + p.tier().String()
	case d.changes == ChangesStaged:
		d.askFirstReason = d.access.whyNotStaged()
	case d.changes == ChangesDirect:
		d.askFirstReason = "it changes files while it runs"
	}
	if d.askFirstReason != "" && d.changes == ChangesStaged {
		d.changes = ChangesDirect
	}
	if d.askFirstReason == "" && p.askFirst {
		d.askFirstReason = AskKey + ` is "always"`
		if c := p.ceiling.AskFirst; len(c) > 0 {
			d.askFirstReason += ": " + c[0].From.String()
		}
	}
}

// applyDirRules is the decision about a call that has changed these, none of them special:
// a rule that names the directory allows it.
func (d Decision) applyDirRules(changes []tool.Change) (_ Decision, differs bool) {
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
		if r.Below == "" || best != nil && rank(best.Source) <= rank(r.Source) && (d.flagAllowsCall || r.Source != SourceFlag) {
			return
		}
		dir := paths.Absolute(r.Below, d.call.Cwd)
		outside := func(name string) bool { return !paths.In(name, dir) }
		if r.matchesIgnoringBelow(&d, args) == match.Yes && p.holds(&r.Binding, d.entry) && !slices.ContainsFunc(names, outside) {
			best, d.flagAllowsCall = r, d.flagAllowsCall || r.Source == SourceFlag
		}
	})
	if best != nil {
		d.setOutcome(Allow, best.decider(), fmt.Sprintf("the %s rule %q says allow, and it has changed nothing else", best.Source, best))
		return d, true
	}
	if d.entry.Capabilities.Exec != "" {
		d.changedDir = d.access.dirOf(changes)
	}
	return d, false
}

// dirOf is the directory that an answer can name for all of these changes; empty if
// there is none.
func (s *access) dirOf(changes []tool.Change) string {
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
