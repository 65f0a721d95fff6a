package jail

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/githistory"
	"github.com/stockade-dev/stockade/host/jail/walk"
	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/services"
)

// maxNamed limits the files that a note names; further files are only counted.
const maxNamed = 5

// scanBudget limits the scan of a workspace, by default to the defaults of walk.Budget; tests
// lower it. thoroughBudget limits the scan if the policy hides a path in a mount, which any
// repository could have in its history.
var scanBudget, thoroughBudget = walk.Budget{}, walk.Budget{Names: 2_000_000, Time: 30 * time.Second}

// mountScan holds the findings of a scan below the mounts of a command, before the command
// starts: repositories, and files that look like secrets.
type mountScan struct {
	snapshot *walk.Snapshot
	at       time.Time       // time at which the scan began
	dir      string          // working directory of the command: notes name files relative to it
	hidden   []string        // files that look like secrets and are hidden from the command
	closed   []closedHistory // repositories whose contents, and so their history, are hidden from the command
}

// scanMounts scans the mounts of a command, and lists in c the files that the command may not
// see or change. On a stage it leaves out those whose changes are decided about afterwards.
// Without mount namespaces it saves the content of closed files, to restore them later. It
// adds the credentials in the git configuration to own.
func (p *plan) scanMounts(ctx context.Context, terms policy.Exec, own *redact.Redactor, histories *githistory.Store, c *wire.Command) (*mountScan, error) {
	b := &mountScan{dir: c.Dir, at: time.Now()}
	var roots []walk.Root
	for _, m := range p.mounts {
		roots = append(roots, walk.Root{Path: m.Host, Writable: m.Write})
	}
	budget, hidden := scanBudget, slices.IndexFunc(terms.Hidden, p.isMounted)
	if hidden >= 0 {
		budget = thoroughBudget
	}
	var err error
	if b.snapshot, err = walk.Scan(ctx, roots, terms.Masked, budget); err != nil {
		return nil, fmt.Errorf("look for what a command may not see: %w", err)
	}
	if hidden >= 0 && !b.snapshot.Complete {
		return nil, denied(fmt.Errorf("not all repositories could be found%s, and one could remember %s, which the policy hides; mount less",
			b.names(" (not %s)", b.snapshot.Unread), terms.Hidden[hidden]))
	}
	p.redactGitCredentials(c.Dir, own)
	for _, s := range b.snapshot.Secrets {
		if _, secret := terms.Opened.SpecialForRead(paths.Guest(s.Path)); secret && p.world.Namespaces {
			b.hidden = append(b.hidden, s.Path)
		}
	}
	c.Masked = append(slices.Clone(p.masked), b.hidden...)
	if err := p.closeHistories(b, terms, histories, c); err != nil {
		return nil, err
	}
	if p.world.Namespaces {
		if p.area == nil { // otherwise the changes show it
			c.Pinned = b.snapshot.Pinned
		}
		for _, closed := range b.snapshot.Closed {
			// Files that git writes itself, and files that a person is asked about each time,
			// are decided about after the command, when the change is known. Other changes
			// would be refused then.
			if p.area == nil || closed.Special.Care == paths.Closed && !closed.Special.WrittenByGit() {
				c.ReadOnly = append(c.ReadOnly, closed.Path)
			}
		}
	} else if err := b.snapshot.SaveContent(0); err != nil {
		return nil, denied(fmt.Errorf("%s cannot keep a command from changing them: %w", policy.Tier(1), err))
	}
	return b, nil
}

// rescanInterval is the least time between two scans of the files that a running command sees.
// Scans take at most a hundredth of the command's time. Tests lower it.
var rescanInterval = time.Second

// newSecretCheck returns a check that returns an error if a file has begun to look like a
// secret since the command started. It scans mounts in which the command cannot change files,
// so somebody else must have changed the file. It scans nothing without namespaces, or if the
// first scan was not complete.
func (b *mountScan) newSecretCheck(ctx context.Context, p *plan, terms policy.Exec) func() error {
	var roots []walk.Root
	for _, m := range p.mounts {
		if !m.Write || p.area != nil {
			roots = append(roots, walk.Root{Path: m.Host})
		}
	}
	known := map[string]bool{}
	for _, s := range b.snapshot.Secrets {
		known[s.Path] = true
	}
	next := time.Now().Add(rescanInterval)
	return func() error {
		begin := time.Now()
		if begin.Before(next) || len(roots) == 0 || !p.world.Namespaces || !b.snapshot.Complete {
			return nil
		}
		now, err := walk.Scan(ctx, roots, terms.Masked, scanBudget)
		next = time.Now().Add(max(rescanInterval, 100*time.Since(begin)))
		if err != nil {
			return nil // the next command will see it
		}
		for _, s := range now.Secrets {
			if _, secret := terms.Opened.SpecialForRead(paths.Guest(s.Path)); secret && !known[s.Path] {
				return &stopError{fmt.Sprintf("%s has come to look like a secret while the command ran, which could read it; its output is not shown, and the next command does not see the file", b.name(s.Path)), true}
			}
		}
		return nil
	}
}

// cannotOpen matches messages of programs that cannot open a file.
var cannotOpen = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)permission denied|EACCES|PermissionError|access denied`)
})

// addHints adds a note if the scan was not complete. It adds a note about files that were
// hidden from the command, if the output says that some file could not be opened.
func (b *mountScan) addHints(ended *services.CommandResult) {
	note := func(format string, args ...any) { ended.Notes = append(ended.Notes, fmt.Sprintf(format, args...)) }
	if !b.snapshot.Complete {
		note("not all of the workspace was looked at before the command ran%s: what looks like a secret there was not hidden from it", b.names(" (not %s)", b.snapshot.Unread))
	}
	if len(b.hidden) > 0 && (cannotOpen().Match(ended.Stdout) || cannotOpen().Match(ended.Stderr)) {
		note("hidden from the command, because they look like secrets: %s; a person can show one: bash(command=...) reads PATH", b.list(b.hidden))
	}
}

// revertAndReport undoes changes that the command must not make, and adds notes about all
// changes to the result.
func (b *mountScan) revertAndReport(ended *services.CommandResult) {
	note := func(format string, args ...any) { ended.Notes = append(ended.Notes, fmt.Sprintf(format, args...)) }
	// The command's changes are examined even if its call was cancelled.
	changes, err := b.snapshot.Changes(context.Background(), b.at, walk.Budget{})
	if err != nil {
		note("what the command has changed could not be found out: %v", err)
		return
	}
	restored := b.snapshot.Restore(changes)
	undone := map[string]bool{}
	for _, did := range []struct {
		words string
		notes walk.Notes
	}{
		{"removed again, because no command may make them", restored.Removed},
		{"put back as they were, because no command may change them", restored.PutBack},
		{"NOT taken back", restored.Failed},
	} {
		var names []string
		for _, n := range did.notes.Notes {
			undone[n.Path] = true
			names = append(names, b.name(n.Path)+why(n.Why))
		}
		if len(names) > 0 {
			note("%s: %s", did.words, clip(names, did.notes.Count))
		}
	}
	lines := b.describeChanges(changes, undone)
	if len(lines) > 0 {
		note("the command %s", strings.Join(lines, "; "))
	}
	if !changes.Complete {
		note("it may have changed more: not everything was looked at%s", b.names(" (not %s)", changes.Unread))
	}
}

// describeChanges describes the changes in words, without the paths in undone. All changes in
// the git directory of a repository count as one name, and so does a directory that is
// completely new or gone. At most maxNamed names are given for each kind of change.
func (b *mountScan) describeChanges(changes walk.Changes, undone map[string]bool) (lines []string) {
	for _, l := range []struct {
		verb string
		list walk.List
	}{{"created", changes.Created}, {"changed", changes.Modified}, {"removed", changes.Removed}} {
		var names []string
		count := l.list.Count
		repositories := map[string]int{}
		for _, e := range l.list.Entries {
			if at, _, in := strings.Cut(e.Path, "/.git/"); in && !undone[e.Path] {
				repositories[at] += max(e.Files, 1)
			}
		}
		for _, at := range slices.Sorted(maps.Keys(repositories)) {
			names = append(names, b.name(at+"/.git")+howMany(repositories[at]))
		}
		for _, e := range l.list.Entries {
			switch {
			case undone[e.Path], strings.Contains(e.Path, "/.git/"):
				count--
			case e.Dir:
				names = append(names, b.name(e.Path)+"/"+howMany(e.Files))
			default:
				names = append(names, b.name(e.Path))
			}
		}
		if count += len(repositories); count > 0 {
			lines = append(lines, l.verb+" "+clip(names, count))
		}
	}
	return lines
}

// howMany returns the number of files in a directory as text, such as " (3 files)"; "": none.
func howMany(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " (1 file)"
	}
	return fmt.Sprintf(" (%d files)", n)
}

func why(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// name returns the path of a file for a note, escaped as in Go but without quotes, and
// relative if below the working directory.
func (b *mountScan) name(file string) string {
	if rel, err := filepath.Rel(b.dir, file); err == nil && filepath.IsLocal(rel) {
		file = rel
	}
	quoted := strconv.Quote(file)
	return quoted[1 : len(quoted)-1]
}

func (b *mountScan) list(files []string) string {
	names := make([]string, 0, maxNamed)
	for _, f := range files[:min(len(files), maxNamed)] {
		names = append(names, b.name(f))
	}
	return clip(names, len(files))
}

func (b *mountScan) names(format string, files []string) string {
	if len(files) == 0 {
		return ""
	}
	return fmt.Sprintf(format, b.list(files))
}

// clip joins the first maxNamed names, and adds how many of count are not named.
func clip(names []string, count int) string {
	names = names[:min(len(names), maxNamed)]
	text := strings.Join(names, ", ")
	if more := count - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
