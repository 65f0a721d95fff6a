package jail

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/effect"
	"github.com/stockade-dev/stockade/host/githistory"
	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
)

// closedHistory is a repository whose contents the command does not see.
type closedHistory struct {
	repository string
	hidden     string   // a hidden path in its files; empty: its history looks as if it held secrets
	anywhere   bool     // it cannot be told whether that is in its files
	names      []string // of these
}

// shows reports whether a path is in a directory that the command is given.
func (p *plan) shows(name string) bool {
	return slices.ContainsFunc(p.mounts, func(m policy.Mount) bool { return paths.In(name, m.Host) })
}

// closeHistories takes the contents of repositories from the command: of those with a
// hidden path in them, and of those that hold what looks like a secret, unless an
// answer or a rule lets commands read it. The error is a [policy.HistoryError] where it
// has to be looked at one first, or a person to be asked.
func (p *plan) closeHistories(b *before, terms policy.Exec, known *githistory.Store, c *wire.Command) error {
	found := b.seen.Repositories
	for _, m := range p.mounts { // the likely ones, if not all was looked at
		found = append(found, filepath.Join(m.Host, ".git"))
	}
	tops := map[string][]string{} // where the files of a repository are that leads there
	for _, name := range found {
		repository, top := githistory.Common(name)
		real, _ := filepath.EvalSymlinks(name) // it can have objects, too
		for _, dir := range []string{repository, real} {
			if _, err := os.Stat(filepath.Join(dir, "objects")); err == nil && dir != "" && p.shows(dir) {
				tops[dir] = append(tops[dir], top)
			}
		}
	}
	for _, dir := range known.Among(p.shows) { // a command may have made something else of it
		if _, ok := tops[dir]; !ok {
			tops[dir] = nil
		}
	}
	ask := policy.HistoryError{Learn: known.Learn}
	for _, dir := range slices.Sorted(maps.Keys(tops)) {
		if hidden, anywhere := hiddenIn(dir, tops[dir], terms.Hidden); hidden != "" {
			b.closed = append(b.closed, closedHistory{repository: dir, hidden: hidden, anywhere: anywhere})
		} else {
			b.judge(dir, terms, known, &ask)
		}
	}
	if len(ask.Unknown)+len(ask.Held) > 0 {
		return &ask
	}
	for _, h := range b.closed {
		if !p.world.Namespaces {
			return denied(fmt.Errorf("%s cannot hide %s from a command: it can be read in the history of %s", policy.Tier(1), h.hidden, h.repository))
		}
		for _, name := range githistory.Contents(h.repository) {
			if !slices.ContainsFunc(p.world.Binds, func(bind wire.Bind) bool { return paths.In(name, bind.Path) }) || slices.Contains(c.Emptied, name) {
				continue
			}
			if st, err := os.Lstat(name); err == nil && st.IsDir() {
				c.Emptied = append(c.Emptied, name)
			} else {
				c.Masked = append(c.Masked, name)
			}
		}
	}
	return nil
}

// judge decides about what looks like a secret in one history. At tier 1, where such
// files are not hidden either, each command is asked about, and the question says so.
func (b *before) judge(repository string, terms policy.Exec, known *githistory.Store, ask *policy.HistoryError) {
	effect := terms.History(repository)
	if effect == policy.Allow || terms.Tier < policy.TierConfined {
		return
	}
	h, ok := known.Known(repository)
	switch {
	case !ok:
		ask.Unknown = append(ask.Unknown, h)
	case h.Clean():
	case effect == policy.Ask:
		ask.Held = append(ask.Held, h)
	default:
		b.closed = append(b.closed, closedHistory{repository: repository, names: h.Names})
	}
}

// hiddenIn is a hidden path among the files of a repository; empty: there is none. Where
// it cannot be told which files these are, they can be anywhere.
func hiddenIn(repository string, main, hidden []string) (path string, anywhere bool) {
	if len(hidden) == 0 {
		return "", false
	}
	tops, known := githistory.Tops(repository, main...)
	for _, h := range hidden {
		if !known || slices.ContainsFunc(tops, func(top string) bool { return paths.In(githistory.Real(h), top) }) {
			return h, !known
		}
	}
	return "", false
}

// historyHints says which contents were kept from the command, and what would show them:
// where it has failed, and where nobody was told before.
func (j *Jail) historyHints(b *before, ended *effect.Ended) {
	for _, h := range b.closed {
		if _, told := j.told.LoadOrStore(h.repository, true); told && ended.Code != nil && *ended.Code == 0 {
			continue
		}
		said := tool.Advise("the command does not see the objects of the repository %s, and git finds none in it: ", b.name(h.repository))
		if h.anywhere {
			said = said.And(tool.Advise("the policy hides paths (files.hidden), and its configuration does not say simply whether they are in it"))
		} else if h.hidden != "" {
			said = said.And(tool.Advise("the policy hides a path in it (files.hidden); the tool git shows the rest of its history"))
		} else {
			why := "not all of its history could be searched for what looks like a secret"
			if len(h.names) > 0 {
				why = fmt.Sprintf("its history holds what looks like a secret: %s; the tool git shows the rest of it", b.list(h.names))
			}
			dir := cmp.Or(strings.TrimSuffix(h.repository, "/.git"), "/")
			rule := policy.Rule{Effect: policy.Allow, Tool: "bash", History: dir}
			said = said.And(tool.Advise("%s; a person can show it to commands: ", why), tool.Do(tool.HintAllow, rule.String()))
		}
		ended.Notes = append(ended.Notes, said.String())
	}
}
