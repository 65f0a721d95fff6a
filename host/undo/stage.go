package undo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/rootedfs"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/host/tool"
)

// staging is a plan while it is staged.
type staging struct {
	u      *Undoer
	cwd    string // directory for paths in diffs
	plan   *plan
	mounts []policy.Mount // sorted: the longest path first
	masked []string       // paths that are hidden from tools
	set    *stage.Set

	conflicts     []conflict // nil: the plan can be committed
	alreadyUndone bool       // set if every file is as planned already, so that nothing is staged
	keptDirs      []string   // directories that should be removed and stay, because they hold other files
}

// conflict is a file that has changed since the turn. diff shows this change; empty: the
// change is unknown, or must not be shown.
type conflict struct {
	path, reason, diff string
}

// stage stages a plan. An error, maybe a *[refusal], means that it cannot be staged. Files
// that have changed since the turn are no error, but conflicts of the result.
func (u *Undoer) stage(ctx context.Context, grant policy.Grant, cwd string, p *plan) (_ *staging, err error) {
	s := &staging{u: u, cwd: cwd, plan: p, mounts: grant.Mounts(), masked: grant.Masked()}
	slices.SortFunc(s.mounts, func(a, b policy.Mount) int { return len(b.Host) - len(a.Host) })
	if s.set, err = stage.New(&stage.Options{Dir: u.stageDir(), Budget: u.budget}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.drop()
		}
	}()
	already := true
	for _, f := range p.files {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		at, err := s.find(f)
		if err != nil {
			return nil, err
		}
		if already {
			difference, err := s.describeDifference(at, f.before, f)
			if err != nil {
				return nil, err
			}
			already = difference == ""
		}
		difference, err := s.describeDifference(at, f.after, f)
		if err != nil {
			return nil, err
		}
		if difference != "" {
			s.conflicts = append(s.conflicts, conflict{f.path, difference, s.diffSinceTurn(ctx, at, f)})
		}
	}
	switch {
	case already:
		s.alreadyUndone, s.conflicts = true, nil
		return s, nil
	case len(s.conflicts) > 0:
		return s, nil
	}
	return s, s.putBack(ctx)
}

func (s *staging) drop() {
	if s != nil {
		_ = s.set.Drop()
	}
}

// place is the place of a file in the tree of a mount.
type place struct {
	tree     *stage.Tree
	dir      *stage.Node // directory of the file; nil: see whyNoDir
	n        *stage.Node // the file; nil: it does not exist
	name     string      // last part of the path
	dirGone  bool        // set if the directory does not exist
	whyNoDir string      // reason why dir is nil; empty otherwise
}

// find returns the place of a file of the turn, in the mount that shows its path. It follows
// no link. For a path that tools may not change, it returns a *[refusal].
func (s *staging) find(f file) (place, error) {
	no := func(format string, args ...any) (place, error) {
		return place{}, s.plan.refuse("%q %s", f.path, fmt.Sprintf(format, args...))
	}
	if !filepath.IsAbs(f.path) || filepath.Clean(f.path) != f.path {
		return no("is no name that a call has changed")
	}
	for _, hidden := range s.masked {
		if paths.In(f.path, hidden) || paths.In(hidden, f.path) {
			return no("is hidden from tools, or leads to something hidden")
		}
	}
	i := slices.IndexFunc(s.mounts, func(m policy.Mount) bool { return paths.In(f.path, m.Host) })
	switch {
	case i < 0:
		return no("is in no directory that tools are shown now")
	case !s.mounts[i].Write:
		return no("is in %q, which tools may only read now", s.mounts[i].Host)
	case s.mounts[i].Host == f.path:
		return no("is itself a directory that tools are shown")
	}
	moves := !isFileOrAbsent(f.before) || !isFileOrAbsent(f.after)
	for _, dir := range paths.PossibleRepositories(paths.Guest(f.path), moves) {
		if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err == nil {
			return no("is %s: %s", paths.RepositorySpecial.What, paths.RepositorySpecial.Why)
		}
	}
	tree, err := s.tree(s.mounts[i].Host)
	if err != nil {
		return place{}, err
	}
	rel, err := filepath.Rel(s.mounts[i].Host, f.path)
	if err != nil {
		return place{}, err
	}
	at := place{tree: tree, name: filepath.Base(rel)}
	at.dir, at.n, err = tree.Find(filepath.ToSlash(rel))
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		at.dirGone, at.whyNoDir = true, "its directory is gone"
	case errors.Is(err, syscall.ENOTDIR):
		at.whyNoDir = "above it is a link or a file now, where a directory was"
	case errors.Is(err, syscall.EAGAIN):
		at.whyNoDir = "what is there is being changed"
	default:
		return at, fmt.Errorf("look for %s: %w", f.path, err)
	}
	return at, nil
}

// tree returns the tree of a mount.
func (s *staging) tree(host string) (*stage.Tree, error) {
	root, info, err := rootedfs.Open(host)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return s.set.Add(root, host, info)
}

// describeDifference describes in a few words how the file at a place differs from v, a
// version of f; empty: it does not differ. v nil: there was no file.
func (s *staging) describeDifference(at place, v *session.Version, f file) (string, error) {
	switch {
	case v == nil && (at.dirGone || at.dir != nil && at.n == nil):
		return "", nil
	case at.dir == nil:
		return at.whyNoDir, nil
	case at.n == nil:
		return "it is gone", nil
	case v == nil:
		return "something is there now", nil
	case at.n.Mode().Type() != typeOf(v):
		return "something else is there now", nil
	}
	mode := func() string {
		if at.n.Mode().Perm() == permOf(v) {
			return ""
		}
		return fmt.Sprintf("its mode is %v", at.n.Mode().Perm())
	}
	switch at.n.Mode().Type() {
	case fs.ModeDir:
		if f.before == nil || f.after == nil {
			return "", nil // the mode of such a directory does not matter
		}
		return mode(), nil
	case fs.ModeSymlink:
		target, err := at.tree.Readlink(at.n)
		if err == nil && target != v.Target {
			return "it leads elsewhere", nil
		}
		return "", err
	case 0:
	default:
		return "it is no file, directory or link", nil
	}
	if v.SHA256 == "" {
		return "", s.plan.refuse("%q is too large to be compared with its state after the turn", at.name)
	}
	now, done, err := at.version()
	if err != nil {
		return "", err
	}
	defer done()
	sum, err := now.SHA256()
	switch {
	case err != nil:
		return "", err
	case now.Size != v.Bytes || fmt.Sprintf("%x", sum) != v.SHA256:
		return "it has changed", nil
	}
	return mode(), nil
}

func isFileOrAbsent(v *session.Version) bool { return v == nil || regular(v) }

// version returns the regular file at a place now, which the commit compares once more. It can be
// read until done is called.
func (at place) version() (v *tool.Version, done func(), err error) {
	f, info, err := at.tree.OpenFile(at.n, os.O_RDONLY)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", at.name, err)
	}
	content := func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(f, 0, info.Size())), nil }
	return &tool.Version{Size: info.Size(), Open: content}, func() { f.Release(); _ = f.Close() }, nil
}

// diffSinceTurn returns the diff from a file after the turn to the file now; empty if one of
// them is unknown or may hold secrets.
func (s *staging) diffSinceTurn(ctx context.Context, at place, f file) string {
	if _, secret := paths.SpecialForRead(paths.Guest(f.path)); secret {
		return ""
	}
	c := tool.Change{Path: f.path, Kind: tool.Modified}
	if regular(f.after) {
		left, err := s.u.content(ctx, f.after)
		if err != nil {
			return ""
		}
		c.Before = &tool.Version{Size: f.after.Bytes, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(left)), nil }}
	}
	if at.n != nil && at.n.Mode().IsRegular() {
		now, done, err := at.version()
		if err != nil {
			return ""
		}
		defer done()
		c.After = now
	}
	text, _, _ := diff.Unified(c, s.cwd, s.u.redact.Finds)
	return text
}

// putBack stages the plan: it removes the files that the turn has made, from the bottom up;
// then it restores the others, from the top down. Files that have changed since the turn
// become conflicts.
func (s *staging) putBack(ctx context.Context) error {
	for _, f := range slices.Backward(s.plan.files) { // sorted by path, so files come after their directory
		if f.after == nil || f.before != nil && typeOf(f.before) == typeOf(f.after) && typeOf(f.after) != fs.ModeSymlink {
			continue
		}
		at, err := s.find(f)
		if err == nil && at.n != nil {
			err = at.tree.Remove(at.n)
		}
		switch {
		case errors.Is(err, syscall.ENOTEMPTY) && f.before == nil:
			s.keptDirs = append(s.keptDirs, f.path)
		case errors.Is(err, syscall.ENOTEMPTY):
			s.conflicts = append(s.conflicts, conflict{path: f.path, reason: "it holds other files now"})
		case err != nil:
			return fmt.Errorf("remove %s: %w", f.path, err)
		}
	}
	for _, f := range s.plan.files {
		if f.before == nil {
			continue
		}
		at, err := s.find(f)
		switch {
		case err != nil:
			return err
		case at.dir == nil:
			s.conflicts = append(s.conflicts, conflict{path: f.path, reason: at.whyNoDir})
			continue
		}
		if err := s.restore(ctx, f, at); err != nil {
			return err
		}
	}
	return nil
}

// restore stages a file as before the turn; a *[refusal] if its content is not stored.
func (s *staging) restore(ctx context.Context, f file, at place) (err error) {
	perm := permOf(f.before)
	switch typeOf(f.before) {
	case fs.ModeDir:
		n := at.n
		if n == nil {
			if n, err = at.tree.Create(at.dir, at.name, fs.ModeDir|perm); err != nil {
				break
			}
		}
		if n.Mode().Perm() != perm {
			err = at.tree.SetMode(n, perm)
		}
	case fs.ModeSymlink:
		err = at.tree.Symlink(at.dir, at.name, f.before.Target)
	case 0:
		if at.n != nil && sameContent(f.before, f.after) {
			err = at.tree.SetMode(at.n, perm)
			break
		}
		var content []byte
		if content, err = s.u.content(ctx, f.before); err == nil {
			err = at.tree.Put(at.dir, at.name, at.n, perm, content)
		}
	default:
		return s.plan.refuse("%q was no file, directory or link", f.path)
	}
	switch {
	case errors.Is(err, session.ErrNoPreimage):
		return s.plan.refuse("the earlier content of %q is not stored: an older version recorded the change, or newer contents have taken its room", f.path)
	case err != nil:
		return fmt.Errorf("put back %s: %w", f.path, err)
	}
	return nil
}

// maxDiffBytes limits all diffs in a result together, in bytes. A diff beyond it is left out.
const maxDiffBytes = 64 << 10

// conflictResult returns the result if files have changed since the turn.
func (s *staging) conflictResult() tool.Result {
	var names []string
	var diffs strings.Builder
	for i, c := range s.conflicts {
		if i < maxNamed {
			names = append(names, fmt.Sprintf("%q (%s)", c.path, c.reason))
		}
		if diffs.Len()+len(c.diff) <= maxDiffBytes {
			diffs.WriteString(c.diff)
		}
	}
	if more := len(s.conflicts) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	r := failed(tool.CodeFilesChanged, tool.ValidationFailed,
		fmt.Sprintf("files of turn %d have changed since: %s", s.plan.turn, strings.Join(names, ", ")),
		"put back what has changed since, or keep it and change what you want by hand")
	r.Err.Stdout = diffs.String()
	return r
}
