package jail

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/githistory"
	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/shellword"
	"github.com/stockade-dev/stockade/host/tool"
)

// closedHistory is a repository whose contents are hidden from the command.
type closedHistory struct {
	repository string
	hidden     string   // a path among its files that the policy hides; empty: its history seems to hold secrets
	uncertain  bool     // it is not known whether hidden is among its files
	names      []string // files in its history that look like secrets
}

// isMounted reports whether a path is in a directory that is mounted for the command.
func (p *plan) isMounted(name string) bool {
	return slices.ContainsFunc(p.mounts, func(m policy.Mount) bool { return paths.In(name, m.Host) })
}

// closeHistories hides contents of repositories from the command: of those with a path among
// their files that the policy hides, and of those whose history seems to hold secrets, unless
// an answer or a rule lets commands read it. The error is a [policy.HistoryError] if a history
// has to be examined first, or a person has to be asked.
func (p *plan) closeHistories(b *mountScan, terms policy.Exec, known *githistory.Store, c *wire.Command) error {
	found := b.snapshot.Repositories
	for _, m := range p.mounts { // the likely ones, in case not everything was looked at
		found = append(found, filepath.Join(m.Host, ".git"))
	}
	tops := map[string][]string{} // tops of main worktrees, by git directory
	for _, name := range found {
		repository, top := githistory.CommonDir(name)
		real, _ := filepath.EvalSymlinks(name) // it can have objects, too
		for _, dir := range []string{repository, real} {
			if _, err := os.Stat(filepath.Join(dir, "objects")); err == nil && dir != "" && p.isMounted(dir) {
				tops[dir] = append(tops[dir], top)
			}
		}
	}
	for _, dir := range known.WithSecrets(p.isMounted) { // git may not take it for a repository any more
		if _, ok := tops[dir]; !ok {
			tops[dir] = nil
		}
	}
	ask := policy.HistoryError{Learn: known.Save}
	for _, dir := range slices.Sorted(maps.Keys(tops)) {
		if hidden, anywhere := hiddenIn(dir, tops[dir], terms.Hidden); hidden != "" {
			b.closed = append(b.closed, closedHistory{repository: dir, hidden: hidden, uncertain: anywhere})
		} else {
			b.judgeHistory(dir, terms, known, &ask)
		}
	}
	if len(ask.Unknown)+len(ask.AskAbout) > 0 {
		return &ask
	}
	for _, h := range b.closed {
		if !p.world.Namespaces {
			return denied(fmt.Errorf("%s cannot hide %s from a command: it can be read in the history of %s", policy.Tier(1), h.hidden, h.repository))
		}
		for _, name := range githistory.ContentPaths(h.repository) {
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

// judgeHistory decides whether commands may read a history that seems to hold secrets. Tier 1 does not
// hide such files either: there each command is asked about, and the question says so.
func (b *mountScan) judgeHistory(repository string, terms policy.Exec, known *githistory.Store, ask *policy.HistoryError) {
	effect := terms.History(repository)
	if effect == policy.Allow || terms.Tier < policy.TierConfined {
		return
	}
	h, ok := known.Lookup(repository)
	switch {
	case !ok:
		ask.Unknown = append(ask.Unknown, h)
	case h.Clean():
	case effect == policy.Ask:
		ask.AskAbout = append(ask.AskAbout, h)
	default:
		b.closed = append(b.closed, closedHistory{repository: repository, names: h.Names})
	}
}

// hiddenIn returns a path among the files of a repository that the policy hides; empty
// if there is none. anywhere says that its worktrees are not all known, so that any path
// may be among them.
func hiddenIn(repository string, main, hidden []string) (path string, anywhere bool) {
	if len(hidden) == 0 {
		return "", false
	}
	tops, known := githistory.WorktreeRoots(repository, main...)
	for _, h := range hidden {
		if !known || slices.ContainsFunc(tops, func(top string) bool { return paths.In(githistory.ResolveParents(h), top) }) {
			return h, !known
		}
	}
	return "", false
}

// noRepository matches the errors of programs for which git finds no repository.
var noRepository = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)not a git repository|error obtaining VCS status`)
})

// addGitElsewhereHint notes that git found no repository because .git leads to a directory that the
// command does not see, as in linked worktrees and submodules.
func (p *plan) addGitElsewhereHint(dir string, ended *services.CommandResult) {
	if !noRepository().Match(slices.Concat(ended.Stdout, ended.Stderr)) {
		return
	}
	missing := func(name string) bool { _, err := os.Lstat(name); return err != nil }
	for p.isMounted(dir) && missing(filepath.Join(dir, ".git")) {
		dir = filepath.Dir(dir)
	}
	name := filepath.Join(dir, ".git")
	repository, _ := githistory.CommonDir(name)
	if !p.isMounted(dir) || p.isMounted(repository) {
		return
	}
	note := fmt.Sprintf("git finds no repository: what %q leads to is not there, or has no worktree here; look at it before you show it to commands", name)
	if tops, _ := githistory.WorktreeRoots(repository); repository != "" && slices.Contains(tops, dir) { // else anybody could have made .git
		word, _ := shellword.Quote(repository) // no name has a NUL
		note = fmt.Sprintf("git finds no repository: %q leads to %q, which the command does not see; a person can show it to commands: --mount %s", name, repository, word)
	}
	ended.Notes = append(ended.Notes, note)
}

// addHistoryHints notes which repositories were hidden from the command, and what would show
// them: if the command has failed, or if the repository was not mentioned before.
func (j *Jail) addHistoryHints(b *mountScan, ended *services.CommandResult) {
	for _, h := range b.closed {
		if _, told := j.mentioned.LoadOrStore(h.repository, true); told && ended.Code != nil && *ended.Code == 0 {
			continue
		}
		said := tool.Advise("the command does not see the objects of the repository %s, and git finds none in it: ", b.name(h.repository))
		if h.uncertain {
			said = said.And(tool.Advise("the policy hides paths (files.hidden), and its configuration does not say simply whether they are in it"))
		} else if h.hidden != "" {
			said = said.And(tool.Advise("the policy hides a path in it (files.hidden); the tool git shows the rest of its history"))
		} else {
			why := "not all of its history could be searched for what looks like a secret"
			if len(h.names) > 0 {
				why = fmt.Sprintf("its history holds what looks like a secret: %s; the tool git shows the rest of it", b.list(h.names))
			}
			dir := cmp.Or(strings.TrimSuffix(h.repository, "/.git"), "/")
			rule := policy.Rule{Effect: policy.Allow, Tool: "bash", HistoryDir: dir}
			said = said.And(tool.Advise("%s; a person can show it to commands: ", why), tool.ActionHint(tool.HintAllow, rule.String()))
		}
		ended.Notes = append(ended.Notes, said.String())
	}
}
