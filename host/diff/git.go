package diff

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/tool"
)

// gitDir is where git keeps a repository.
const gitDir = ".git"

// cutRepository cuts a path at its first .git: the directory that has it, and the
// name in there.
func cutRepository(path string) (root, rel string, inside bool) {
	root, rel, inside = strings.Cut(path+"/", "/"+gitDir+"/")
	return root, strings.TrimSuffix(rel, "/"), inside
}

// repository is what was changed in one.
type repository struct {
	root    string
	changes map[string]tool.Change // by the name in .git
	seen    int                    // commits that were read
}

// repositories takes those out of changes, in their order.
func repositories(changes []tool.Change) (found []*repository, others []tool.Change) {
	by := map[string]*repository{}
	for _, c := range changes {
		root, rel, inside := cutRepository(c.Path)
		if !inside {
			others = append(others, c)
			continue
		}
		r := by[root]
		if r == nil {
			r = &repository{root: root, changes: map[string]tool.Change{}}
			by[root], found = r, append(found, r)
		}
		r.changes[rel] = c
	}
	return found, others
}

// words says what git has done, a line for each, and lists the changes that say more
// than that.
func (r *repository) words() (lines []string, rest []tool.Change) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	created, removed := 0, 0
	var index string
	var names []string
	for rel := range r.changes {
		names = append(names, rel)
	}
	slices.Sort(names)
	for _, rel := range names {
		c := r.changes[rel]
		kind, name, _ := strings.Cut(rel, "/")
		if open := openIn[kind]; open.todo != "" {
			switch {
			case rel == kind && c.Kind == tool.DirectoryRemoved:
				say("%s has ended", open.what)
			case name == open.todo && c.After != nil:
				say("%s %s", open.what, todo(c.After))
			}
			if regular(c.After) {
				rest = append(rest, c)
			}
			continue
		}
		dir := c.Kind == tool.DirectoryCreated || c.Kind == tool.DirectoryRemoved || regularless(c)
		switch {
		case rel == "" && c.Kind == tool.DirectoryCreated:
			say("a new repository")
		case dir:
		case kind == "objects" && c.After == nil:
			removed++
		case kind == "objects":
			created++
		case rel == "index":
			index = indexed(c)
		case strings.HasPrefix(name, "heads/") && kind == "refs":
			say("%s", r.moved("branch "+strings.TrimPrefix(name, "heads/"), strings.TrimPrefix(name, "heads/"), c))
		case strings.HasPrefix(name, "tags/") && kind == "refs":
			say("%s", r.moved("tag "+strings.TrimPrefix(name, "tags/"), "", c))
		case rel == "refs/stash":
			say("%s", r.moved("the stash", "the stash", c))
		case kind == "refs":
			say("%s", r.moved(name, "", c))
		case rel == "HEAD":
			say("%s", r.head(c))
		case kind == "logs", rel == "COMMIT_EDITMSG", rel == "ORIG_HEAD", rel == "FETCH_HEAD", rel == "AUTO_MERGE", rel == "description":
		case kind == "hooks" && strings.HasSuffix(rel, ".sample"), rel == "info/exclude":
		default:
			rest = append(rest, c)
		}
	}
	if index != "" {
		say("%s", index)
	}
	if removed > 0 {
		say("%s removed", count(removed, "object"))
	} else if created > 0 && len(lines) == 0 {
		say("%s", count(created, "new object"))
	}
	if len(lines)+len(rest) == 0 {
		say("%s of its own", count(len(names), "change"))
	}
	return lines, rest
}

// openIn are the directories of what git goes on with when it is told to, and the file
// in each that says how.
var openIn = map[string]struct{ what, todo string }{
	"rebase-merge": {"a rebase", "git-rebase-todo"},
	"rebase-apply": {"a rebase or a series of patches", "next"},
	"sequencer":    {"a series of picks or reverts", "todo"},
}

// maxSteps is how many steps of a rebase are told.
const maxSteps = 50

// todo says what git does next.
func todo(v *tool.Version) string {
	data, err := head(v, maxText)
	if err != nil {
		return "whose next steps cannot be read"
	}
	var steps []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			steps = append(steps, strconv.Quote(line))
		}
	}
	if more := len(steps) - maxSteps; more > 0 {
		steps = append(steps[:maxSteps], fmt.Sprintf("%d more", more))
	}
	if steps == nil {
		return "that has stopped in its last step"
	}
	return "that has stopped, and would go on with " + strings.Join(steps, ", ")
}

// regularless reports whether a change is about no file at all.
func regularless(c tool.Change) bool {
	return !regular(c.Before) && !regular(c.After)
}

// moved says what became of a reference. on is its name where commits are made on
// it.
func (r *repository) moved(what, on string, c tool.Change) string {
	before, after := reference(c.Before), reference(c.After)
	switch {
	case after == "":
		return what + " removed"
	case on != "":
		if n, subject := r.commits(after, before); n > 0 {
			return fmt.Sprintf("%s on %s: %q", count(n, "commit"), on, subject)
		}
	}
	if before == "" {
		return fmt.Sprintf("%s at %.10s", what, after)
	}
	return fmt.Sprintf("%s moves from %.10s to %.10s", what, before, after)
}

// head says where HEAD is now.
func (r *repository) head(c tool.Change) string {
	after := reference(c.After)
	if branch, ok := strings.CutPrefix(after, "ref: refs/heads/"); ok {
		return "on branch " + branch
	}
	if n, subject := r.commits(after, reference(c.Before)); n > 0 {
		return fmt.Sprintf("%s on no branch: %q", count(n, "commit"), subject)
	}
	return fmt.Sprintf("HEAD at %.10s, on no branch", after)
}

// reference is the content of a reference; empty if there is none.
func reference(v *tool.Version) string {
	data, _ := head(v, 1<<10)
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}

// maxCommits is how many commits are read of all references of a repository.
const maxCommits = 1000

// commits counts the new ones from one back to another, along the first parents,
// and returns the subject of the newest.
func (r *repository) commits(from, to string) (n int, subject string) {
	for id := from; id != to && r.seen < maxCommits; n++ {
		r.seen++
		text, ok := r.commit(id)
		if !ok {
			break
		}
		header, message, _ := strings.Cut(text, "\n\n")
		if n == 0 {
			subject, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
		}
		_, parent, _ := strings.Cut(header, "\nparent ")
		id, _, _ = strings.Cut(parent, "\n")
	}
	return n, subject
}

// commit reads a commit that is new, and an object of its own.
func (r *repository) commit(id string) (string, bool) {
	const most = 64 << 10
	if len(id) < 40 || len(id) > 64 {
		return "", false
	}
	c := r.changes["objects/"+id[:2]+"/"+id[2:]]
	data, err := head(c.After, most)
	if err != nil {
		return "", false
	}
	z, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return "", false
	}
	text, _ := io.ReadAll(io.LimitReader(z, most))
	kind, body, _ := strings.Cut(string(text), "\x00")
	return body, strings.HasPrefix(kind, "commit ")
}

// head is the first bytes of a file.
func head(v *tool.Version, most int64) ([]byte, error) {
	if !regular(v) {
		return nil, fmt.Errorf("it is no file")
	}
	r, err := v.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, most))
}

// count is a number of something.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
