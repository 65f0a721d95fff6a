package policy

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/sdk/go/filename"
)

// dependencyDirs hold packages of others. A yes to what git ignores does not cover changes there.
var dependencyDirs = []string{"node_modules", ".venv", "venv", "vendor", "target"}

// decideWithoutIgnored decides about changes as decideFreely, with the decision d, made from asked.
// Changes that git ignores do not count where a yes was given for their directory, see
// [git.Heads.Ignored].
func (asked Decision) decideWithoutIgnored(ctx context.Context, d Decision, changes []tool.Change, dirs []*git.Dir) Decision {
	if len(changes) == 0 || isThirdParty(d.entry) {
		return d
	}
	heads := git.OpenHeads(changes)
	defer heads.Close()
	free := d.decideFreely(ctx, changes, heads, dirs)
	if free.effect == Allow || !d.asksForChanges() {
		return free
	}
	d.ignored = map[string]string{}
	free.ignored = d.ignored
	rest := slices.DeleteFunc(slices.Clone(changes), func(c tool.Change) bool {
		top := heads.Ignored(c)
		if top != "" {
			d.ignored[c.Path] = top
		}
		return top != "" && !d.asksAlways(c.Path) && d.policy.freedom.ignores(top, c.Path)
	})
	switch again, _ := asked.DecideChanges(rest, dirs...); {
	case len(rest) == len(changes):
		return free
	case len(rest) == 0:
		d.setOutcome(Allow, Decider{Rule: "ignored by git", Source: SourceSession}, "it changes only what git ignores, and the answer for that was yes")
		return d
	case again.effect == Allow && again.WithDiff(ctx, rest, dirs...).diff.ShowsAll():
		return again
	}
	return d.decideFreely(ctx, rest, heads, dirs)
}

// asksAlways reports whether a change asks although git ignores it: in a directory of packages
// below the working directory, and of what looks like a secret.
func (d Decision) asksAlways(name string) bool {
	_, secret := paths.SpecialForRead(paths.Guest(name))
	rel := strings.ToLower(strings.TrimPrefix(name, d.call.Cwd))
	return secret || slices.ContainsFunc(strings.Split(filepath.ToSlash(rel), "/"), func(part string) bool { return slices.Contains(dependencyDirs, part) })
}

// ignores reports whether a yes was given for what git ignores at the path top, and name, which is
// there, was not moved to it by a call.
func (f *Freedom) ignores(top, name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; paths.In(name, top); name = filepath.Dir(name) {
		if f.made[filename.UTF8(name)] == movedHere {
			return false
		}
	}
	return f.ignored[top]
}

// NoteAnswer remembers a yes to this decision for what git ignores among its changes, and carries
// out [ScopeFree] if the question offered it.
func (d Decision) NoteAnswer(scope Scope) {
	f := d.policy.freedom
	if scope == ScopeFree && d.offersFreedom() {
		f.add(OpenDir{d.freeDir, Provenance{Source: SourceSession}, d.personalAsking}, d.freeRemoves)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, top := range d.ignored {
		if f.ignored == nil {
			f.ignored = map[string]bool{}
		}
		f.ignored[top] = f.ignored[top] || d.effect == Ask && !d.asksAlways(name)
	}
}
