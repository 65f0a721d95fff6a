package policy

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
)

// ChangesMode selects what happens to the files that a command changes.
type ChangesMode string

// The modes, the widest first. An empty mode is not set.
const (
	ChangesDirect ChangesMode = "direct" // the command changes the host's files
	ChangesStaged ChangesMode = "staged" // the host's files change only when the changes are known and allowed
	ChangesNone   ChangesMode = "none"   // the command can change no file
)

// changesModes holds all modes, the narrowest first.
var changesModes = []ChangesMode{ChangesNone, ChangesStaged, ChangesDirect}

// AtMost returns the bound of a layer that permits this mode and narrower ones.
func (c ChangesMode) AtMost(from Provenance) *Limit {
	return &Limit{Value: int64(slices.Index(changesModes, c)), Text: strconv.Quote(string(c)), From: from}
}

// under returns the mode, or the mode of the bound if that is narrower.
func (c ChangesMode) under(bound *Limit) ChangesMode {
	if bound == nil || c == "" || slices.Index(changesModes, c) <= int(bound.Value) {
		return c
	}
	return changesModes[bound.Value]
}

// Keys of agent.toml and of policy.toml.
const (
	ChangesKey = "bash.changes"
	AskKey     = "bash.ask"
)

// decideStaging sets the mode for the changes of a process, and the reason to ask before the
// process runs. There is no reason if the process reaches only files, and can change none or
// its changes are kept apart from the host's files until they are allowed, unless AskFirst of
// the options or the ceiling is set. chosen is the mode in the rule that decides; empty: the
// rule sets none.
func (p *Policy) decideStaging(d *Decision, chosen ChangesMode) {
	c := d.entry.Capabilities
	if c.Exec == "" {
		return
	}
	d.changes = cmp.Or(chosen.under(p.ceiling.Changes), p.changes)
	if d.planned() {
		d.changes = ChangesNone
	}
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

// applyDirRules decides about a call with these changes, none of them special. A rule with a
// directory that holds all of them allows the call, unless git loses something; then it asks. differs
// reports whether there is such a rule. If not, changedDir of the result is set, for a command.
func (d Decision) applyDirRules(changes []tool.Change, dirs []*git.Dir) (_ Decision, differs bool) {
	names := namesOf(changes)
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
		for _, dir := range dirs {
			if why := whyNotPlainInGit(dir); why != "" && !d.flagAllowsCall {
				d.setOutcome(Ask, byDefault("changes that lose something in git"), fmt.Sprintf("%s, which the rule %q does not cover", why, best))
			}
		}
		return d, true
	}
	if d.entry.Capabilities.Exec != "" {
		d.changedDir = d.access.dirOf(changes)
	}
	return d, false
}

// dirOf returns the smallest directory that holds all changes, but .git instead of a directory
// inside. Empty: no rule could name it, or no mount shows it.
func (s *access) dirOf(changes []tool.Change) string {
	dir := ""
	for _, c := range changes {
		isDir := c.Kind == tool.DirectoryCreated || c.Kind == tool.DirectoryRemoved || c.After != nil && c.After.Mode.IsDir()
		for _, name := range []string{c.Path, c.OldPath()} {
			if !isDir {
				name = filepath.Dir(name)
			}
			dir = cmp.Or(dir, name)
			for !paths.In(name, dir) {
				if dir == filepath.Dir(dir) {
					return ""
				}
				dir = filepath.Dir(dir)
			}
		}
	}
	// A directory inside .git means nothing to a person.
	if root, _, inside := git.CutDir(dir); inside {
		dir = root + "/.git"
	}
	again, err := ParseRule(Rule{Effect: Allow, Tool: bashTool, Below: dir}.String())
	if _, seen := s.sees(dir); !seen || err != nil || again.Below != dir {
		return ""
	}
	return dir
}
