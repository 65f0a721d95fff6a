package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/guests/git/repo"
	"github.com/stockade-dev/stockade/guests/internal/pathname"
	"github.com/stockade-dev/stockade/sdk/go/nearest"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// open opens the repository of a call.
func open(in args, check func() error) (*call, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, tool.IO("working directory: %w", err)
	}
	abs, err := pathname.Resolve(in.Path, cwd)
	if err != nil {
		return nil, err
	}
	r, err := repo.Open(abs, check)
	if err != nil {
		return nil, err
	}
	c := &call{args: in, Repo: r, cwd: cwd, page: page{skip: max(in.Offset, 0), limit: in.Limit}}
	if rel := filepath.ToSlash(r.OpenedPath); in.Path != "" && rel != "." {
		if part, _, _ := strings.Cut(rel, "/"); part == ".git" || r.Worktree == "" {
			r.Close()
			return nil, tool.InvalidInput("path %s is inside the git directory", displayName(in.Path))
		}
		c.pathFilter = pathname.FromWASI(rel)
	}
	if err = c.loadHidden(); err == nil && c.isHidden(c.pathFilter) {
		err = tool.Denied("%s: %w", displayName(in.Path), errHidden)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return c, nil
}

// explain returns err. To one about an unknown revision it adds similar names, or else a hint.
func (c *call) explain(err error) error {
	unknown, ok := errors.AsType[*repo.UnknownError](err)
	if !ok {
		return err
	}
	if near := nearby(unknown.Name, c.Names()); len(near) > 0 {
		return tool.NotFound("%w; did you mean %s?", unknown.Unwrap(), strings.Join(near, " or "))
	}
	return tool.NotFound("%w; operation branches lists the branches", unknown.Unwrap())
}

// nearby returns a few candidates that are similar to name, as a whole or in their last part.
func nearby(name string, candidates []string) []string {
	lower := strings.ToLower(name)
	return nearest.Few(name, candidates, func(candidate string) (int, bool) {
		whole := strings.ToLower(candidate)
		last := whole[strings.LastIndexByte(whole, '/')+1:]
		far := min(nearest.Distance(lower, whole), nearest.Distance(lower, last))
		return far, far <= max(2, len(name)/3) && far < len(name)-1
	})
}

// covers reports whether a path is the path of the call or below it, and is not hidden.
func (c *call) covers(path string) bool {
	return (c.pathFilter == "" || path == c.pathFilter || strings.HasPrefix(path, c.pathFilter) && path[len(c.pathFilter)] == '/') && !c.isHidden(path)
}

// checkPathKnown returns an error if the call's path is neither in the index nor in one of the
// trees nor in the worktree. x nil: it looks only in the trees.
func (c *call) checkPathKnown(x *repo.Index, trees ...repo.ID) error {
	if c.pathFilter == "" || x.Has(c.pathFilter) {
		return nil
	}
	for _, tree := range trees {
		if tree.IsZero() {
			continue
		}
		if _, found, err := c.Lookup(tree, c.pathFilter); found || err != nil {
			return err
		}
	}
	if x != nil && c.Worktree != "" {
		if _, err := os.Lstat(c.abs(c.pathFilter)); err == nil {
			return nil
		}
		return tool.NotFound("%s did not match any file: it is neither in the work tree nor in the index nor in the commit; glob finds files by name, "+
			"and log with this path tells whether it was removed", displayName(c.abs(c.pathFilter)))
	}
	return tool.NotFound("%s did not match any file of the two revisions; log with this path tells which commits have changed it", displayName(c.pathFilter))
}

// mayHold reports whether a directory may hold a covered path. dir ends in a slash or is "".
func (c *call) mayHold(dir string) bool {
	return c.pathFilter == "" || c.covers(strings.TrimSuffix(dir, "/")) || strings.HasPrefix(c.pathFilter+"/", dir)
}

// abs returns the absolute path of a path of the repository.
func (c *call) abs(path string) string {
	top := c.Worktree
	if top == "" {
		top = c.GitDir
	}
	if path == "" {
		return top
	}
	return top + "/" + pathname.ToWASI(path)
}

// isSecret reports whether a path looks like a secret, and its content must not be shown. A
// file that the call names may be shown if it can be opened: the host has asked a person about
// it. The host asks about no directory, and about a link by the name of its target.
func (c *call) isSecret(path string) bool {
	if !c.looksSecret(path) {
		return false
	}
	if path != c.pathFilter || c.Worktree == "" {
		return true
	}
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		if st, err := os.Lstat(c.abs(dir)); err != nil || !st.IsDir() {
			return true
		}
	}
	if st, err := os.Lstat(c.abs(path)); err != nil || !st.Mode().IsRegular() {
		return true
	}
	f, err := os.Open(c.abs(path))
	if err != nil {
		return true
	}
	_ = f.Close()
	return false
}

// notShown returns the line that replaces the content of a secret.
func notShown(path string) string {
	return fmt.Sprintf("[%s: looks like a secret; not shown, unless a call names it as path and a person says yes]", quote(path))
}

// relative returns a path of the repository relative to the working directory.
func (c *call) relative(path string) string {
	rel, err := filepath.Rel(c.cwd, c.abs(path))
	if err != nil {
		return path
	}
	if rel = pathname.FromWASI(filepath.ToSlash(rel)); strings.HasSuffix(path, "/") {
		rel += "/"
	}
	return rel
}

// quote returns a name in git's form: in quotes if it has control characters, quotes,
// backslashes or invalid UTF-8.
func quote(name string) string {
	if !needsQuotes(name) {
		return name
	}
	return `"` + escape(name) + `"`
}

func needsQuotes(name string) bool {
	return !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f || c == '"' || c == '\\' })
}

func escape(name string) string {
	var b strings.Builder
	valid := utf8.ValidString(name)
	for i := range len(name) {
		ch := name[i]
		if at := strings.IndexByte("\a\b\t\n\v\f\r\"\\", ch); at >= 0 {
			b.WriteByte('\\')
			b.WriteByte(`abtnvfr"\`[at])
		} else if ch < ' ' || ch == 0x7f || ch >= utf8.RuneSelf && !valid {
			fmt.Fprintf(&b, `\%03o`, ch)
		} else {
			b.WriteByte(ch)
		}
	}
	return b.String()
}

// displayName is quote for errors: the form is that of Go.
func displayName(name string) string {
	if needsQuotes(name) {
		return strconv.Quote(name)
	}
	return name
}
