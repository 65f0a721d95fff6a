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

// closedHistory is a repository whose contents, and so its history, are hidden from the
// command, which still sees its working files.
type closedHistory struct {
	repository string
	hidden     string // path among its files that the policy hides; "": its history may hold secrets
	uncertain  bool   // hidden may not be among its files, because not all worktrees are known
	// names are files in its history that look like secrets, if hidden is "". Empty: not all of
	// the history was searched.
	names []string
}

// isMounted reports whether a path of the host is in a mount of the command.
func (p *plan) isMounted(name string) bool {
	return slices.ContainsFunc(p.mounts, func(m policy.Mount) bool { return paths.In(name, m.Host) })
}

// closeHistories hides the objects of repositories from the command. This concerns
// repositories whose files include a path that the policy hides, and repositories whose
// history may hold secrets, unless an answer or a rule lets commands read it. The error is a
// [policy.HistoryError] if a history has to be examined first, or a person has to be asked. It
// is another one if a path that the policy hides is in a history, and the tier cannot hide it.
func (p *plan) closeHistories(b *mountScan, terms policy.Exec, known *githistory.Store, c *wire.Command) error {
	found := b.snapshot.Repositories
	for _, m := range p.mounts { // likely repositories, in case the scan was not complete
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
	for _, dir := range known.WithSecrets(p.isMounted) { // git may no longer see a repository there
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

// judgeHistory decides whether commands may read a history that may hold secrets. If not, it
// adds the repository to b.closed, or to ask if that is still to be found out. Tier 1 does
// not hide such files anyway: there a person is asked about each command, and the question
// says so.
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

// hiddenIn returns a path among hidden that is in a worktree of the repository; "": there is
// none. main lists its known worktrees. anywhere is set if not all worktrees are known; then
// the path is any of hidden.
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

// noRepository matches messages of programs for which git finds no repository.
var noRepository = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)not a git repository|error obtaining VCS status`)
})

// addGitElsewhereHint adds a note if git found no repository because .git leads to a
// directory that the command does not see, as in linked worktrees and submodules.
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
	if tops, _ := githistory.WorktreeRoots(repository); repository != "" && slices.Contains(tops, dir) { // otherwise anybody could have made .git
		word, _ := shellword.Quote(repository) // no name contains a NUL
		note = fmt.Sprintf("git finds no repository: %q leads to %q, which the command does not see; a person can show it to commands: --mount %s", name, repository, word)
	}
	ended.Notes = append(ended.Notes, note)
}

// addHistoryHints adds notes about repositories whose contents were hidden from the command,
// and how a rule can show those that the policy does not hide. After a successful command it
// skips repositories that an earlier result has named.
func (j *Jail) addHistoryHints(b *mountScan, ended *services.CommandResult) {
	for _, h := range b.closed {
		if _, mentioned := j.mentioned.LoadOrStore(h.repository, true); mentioned && ended.Code != nil && *ended.Code == 0 {
			continue
		}
		hint := tool.Advise("the command does not see the objects of the repository %s, and git finds none in it: ", b.name(h.repository))
		if h.uncertain {
			hint = hint.And(tool.Advise("the policy hides paths (files.hidden), and its configuration does not say simply whether they are in it"))
		} else if h.hidden != "" {
			hint = hint.And(tool.Advise("the policy hides a path in it (files.hidden); the tool git shows the rest of its history"))
		} else {
			why := "not all of its history could be searched for what looks like a secret"
			if len(h.names) > 0 {
				why = fmt.Sprintf("its history holds what looks like a secret: %s; the tool git shows the rest of it", b.list(h.names))
			}
			dir := cmp.Or(strings.TrimSuffix(h.repository, "/.git"), "/")
			rule := policy.Rule{Effect: policy.Allow, Tool: "bash", HistoryDir: dir}
			hint = hint.And(tool.Advise("%s; a person can show it to commands: ", why), tool.ActionHint(tool.HintAllow, rule.String()))
		}
		ended.Notes = append(ended.Notes, hint.String())
	}
}
