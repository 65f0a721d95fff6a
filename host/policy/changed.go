package policy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
)

// writers are the built-in tools whose argument path, or patch, names the files that they
// change. If a rule for one of them denies or asks about such a path, it also applies to tools
// that are not in this list and change the file.
var writers = []string{"apply_patch", "file_edit", "file_write", "insert_lines", "replace_lines"}

// maxPathsPerBudget limits the number of changed paths that are checked against the rules with
// one budget of work; the next paths get a new budget.
const maxPathsPerBudget = 4096

// aboutChanges reports whether a rule restricts the files that the tool name may change: the
// rule denies or asks, has a condition that can be about the argument path, and is about this
// tool or all tools; or about one of the writers, if this tool is none.
func (r *Rule) aboutChanges(name string) bool {
	if r.Effect == Allow || r.Tool != name && r.Tool != AnyTool && (!slices.Contains(writers, r.Tool) || slices.Contains(writers, name)) {
		return false
	}
	return slices.ContainsFunc(r.Where, onPath)
}

func onPath(c match.Condition) bool {
	name, any := c.TopArg()
	return !any || strings.EqualFold(name, tool.PatchPath)
}

// namesOf returns the paths of changes, after and before.
func namesOf(changes []tool.Change) (names []string) {
	for _, c := range changes {
		names = append(names, c.Path)
		if c.From != "" {
			names = append(names, c.From)
		}
	}
	return names
}

// applyPathRules applies the rules about paths to the changes that a call has made on its
// stage: a command names no paths before it runs, and a third-party tool may give its
// arguments any names. It reports whether this changes the decision. If the rules need more
// work than they may use, the call is denied.
func (d *Decision) applyPathRules(changes []tool.Change) bool {
	names := namesOf(changes)
	p := d.policy
	p.mu.RLock()
	defer p.mu.RUnlock()
	var by *Rule
	effect := Allow
	for some := range slices.Chunk(names, maxPathsPerBudget) {
		work := match.NewWork()
		for i := range p.rules {
			r := &p.rules[i]
			if !r.aboutChanges(d.entry.Name) || r.Effect >= effect || slices.Contains(d.overridden, r.identity()) || r.Effect == d.effect && r.decider() == d.by {
				continue
			}
			work.Begin(i, r.Source == SourceProject)
			switch d.matchChangedPaths(r, some, work) {
			case match.Yes:
				by, effect = r, r.Effect
			case match.Unsure:
				by, effect = r, min(effect, Ask)
			}
		}
		if costliest, out := work.Exhausted(); out {
			r := &p.rules[costliest]
			d.setOutcome(Deny, Provenance{r.Source, r.Origin}.decider(r.String()),
				fmt.Sprintf("checking the rules for its changes takes more than %d units of work for %d paths, %s", match.MaxWork, maxPathsPerBudget, r.tookMost()))
			return true
		}
	}
	if by == nil {
		return false
	}
	d.setOutcome(effect, by.decider(), fmt.Sprintf("the %s rule %q says %s, and it has changed such a path", by.Source, by, effect))
	if by.Why != "" {
		d.reason += ": " + by.Why
	}
	d.mustAsk = true
	if by.Source.isPersonal() {
		d.personalAsking = append(d.personalAsking, by.identity())
	} else {
		d.othersAsk = true
	}
	return true
}

// matchChangedPaths reports whether a rule applies to a call that has changed one of the named
// paths. The rule may name a path absolute, or relative to the directory of the call.
func (d *Decision) matchChangedPaths(r *Rule, names []string, work *match.Work) match.Truth {
	as := *r // the rule applies as if it named this tool
	as.Tool = d.entry.Name
	speaks := func(names []string) match.Truth {
		args := match.NewArguments(d.call.Args, d.call.Cwd, work)
		args.Derive(tool.PatchPath, func() ([]string, bool) { return names, true })
		return as.matchesConditions(d, args)
	}
	absolute := speaks(names)
	literal := func(c match.Condition) bool { return onPath(c) && c.Kind() != match.Path }
	if !slices.ContainsFunc(r.Where, literal) {
		return absolute
	}
	relative := make([]string, len(names))
	for i, name := range names {
		relative[i] = name
		if rel, err := filepath.Rel(d.call.Cwd, name); err == nil && paths.In(name, d.call.Cwd) {
			relative[i] = filepath.ToSlash(rel)
		}
	}
	if slices.ContainsFunc(r.Where, func(c match.Condition) bool { return literal(c) && c.Not() }) {
		return min(absolute, speaks(relative))
	}
	return max(absolute, speaks(relative))
}
