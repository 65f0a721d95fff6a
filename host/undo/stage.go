package undo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/stockade-dev/stockade/host/beneath"
	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/host/tool"
)

// staging is the way back from a turn while it is staged.
type staging struct {
	u      *Undoer
	cwd    string
	way    *way
	mounts []policy.Mount // the longest name first
	masked []string
	trees  map[string]*stage.Tree // by the mount
	set    *stage.Set

	conflicts []conflict
	already   bool // all is as it was before the turn
	stays     []string
}

// conflict is a file that is not any more as the turn has left it.
type conflict struct {
	path, how, diff string
}

// stage stages the way back. An error is that of what keeps it from being staged,
// maybe a [refused]; that files have changed since is in the result.
func (u *Undoer) stage(ctx context.Context, grant policy.Grant, cwd string, w *way) (_ *staging, err error) {
	s := &staging{u: u, cwd: cwd, way: w, mounts: grant.Mounts(), masked: grant.Masked(), trees: map[string]*stage.Tree{}}
	slices.SortFunc(s.mounts, func(a, b policy.Mount) int { return len(b.Host) - len(a.Host) })
	if s.set, err = stage.New(&stage.Options{Dir: u.stages(), Budget: u.budget}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.drop()
		}
	}()
	already := true
	for _, f := range w.files {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		at, err := s.find(f)
		if err != nil {
			return nil, err
		}
		if already {
			how, err := s.differs(at, f.was, f)
			if err != nil {
				return nil, err
			}
			already = how == ""
		}
		how, err := s.differs(at, f.now, f)
		if err != nil {
			return nil, err
		}
		if how != "" {
			s.conflicts = append(s.conflicts, conflict{f.path, how, s.since(ctx, at, f)})
		}
	}
	switch {
	case already:
		s.already, s.conflicts = true, nil
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

// place is where a file is, or would be.
type place struct {
	tree *stage.Tree
	dir  *stage.Node // nil: it is not there, or something else
	n    *stage.Node // nil: nothing
	name string
	gone bool   // the directory is not there
	how  string // why there is no directory
}

// find looks for a file of the turn, in the mount that shows it under this name. No
// link is followed.
func (s *staging) find(f file) (place, error) {
	no := func(format string, args ...any) (place, error) {
		return place{}, s.way.refuse("%q %s", f.path, fmt.Sprintf(format, args...))
	}
	if !filepath.IsAbs(f.path) || filepath.Clean(f.path) != f.path {
		return no("is no name that a call has changed")
	}
	for _, hidden := range s.masked {
		if paths.In(f.path, hidden) || paths.In(hidden, f.path) {
			return no("is in what no tool sees, or leads to it")
		}
	}
	i := slices.IndexFunc(s.mounts, func(m policy.Mount) bool { return paths.In(f.path, m.Host) })
	switch {
	case i < 0:
		return no("is in no directory that tools are shown now")
	case !s.mounts[i].Write:
		return no("is in %q, which tools may only read now", s.mounts[i].Host)
	case s.mounts[i].Host == f.path:
		return no("is a directory that tools are shown, and not in one")
	}
	moves := !simple(f.was) || !simple(f.now)
	for _, dir := range paths.Repository(paths.Guest(f.path), moves) {
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
		at.gone, at.how = true, "its directory is gone"
	case errors.Is(err, syscall.ENOTDIR):
		at.how = "above it is a link or a file now, where a directory was"
	case errors.Is(err, syscall.EAGAIN):
		at.how = "what is there is being changed"
	default:
		return at, fmt.Errorf("look for %s: %w", f.path, err)
	}
	return at, nil
}

// tree is the tree of a mount.
func (s *staging) tree(host string) (*stage.Tree, error) {
	if tree := s.trees[host]; tree != nil {
		return tree, nil
	}
	root, info, err := beneath.Open(host)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	tree, err := s.set.Add(root, host, info)
	s.trees[host] = tree
	return tree, err
}

// differs says how what is there is not a version of a file; empty if it is.
func (s *staging) differs(at place, v *session.Version, f file) (string, error) {
	switch {
	case v == nil && (at.gone || at.dir != nil && at.n == nil):
		return "", nil
	case at.dir == nil:
		return at.how, nil
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
		if f.was == nil || f.now == nil {
			return "", nil // its mode makes no difference
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
		return "", s.way.refuse("%q has too many bytes to be compared with what was left", at.name)
	}
	size, sum, err := hash(at)
	switch {
	case err != nil:
		return "", err
	case size != v.Bytes || fmt.Sprintf("%x", sum) != v.SHA256:
		return "it has changed", nil
	}
	return mode(), nil
}

// simple reports whether a version is a regular file or nothing.
func simple(v *session.Version) bool { return v == nil || regular(v) }

// hash reads what the host has of a regular file. A commit compares it once more.
func hash(at place) (size int64, sum [sha256.Size]byte, err error) {
	r, size, err := open(at)
	if err != nil {
		return 0, sum, err
	}
	h := sha256.New()
	size, err = io.Copy(h, io.NewSectionReader(r, 0, size))
	return size, [sha256.Size]byte(h.Sum(nil)), errors.Join(err, r.Close())
}

// reader is a file of a tree that is read.
type reader struct{ *stage.File }

func (r reader) Close() error {
	r.Release()
	return r.File.Close()
}

func open(at place) (reader, int64, error) {
	f, info, err := at.tree.OpenFile(at.n, os.O_RDONLY)
	if err != nil {
		return reader{}, 0, fmt.Errorf("read %s: %w", at.name, err)
	}
	return reader{f}, info.Size(), nil
}

// since is the difference between what the turn has left and what is there now, if
// both are known and no secrets.
func (s *staging) since(ctx context.Context, at place, f file) string {
	if _, secret := paths.Read(paths.Guest(f.path)); secret {
		return ""
	}
	c := tool.Change{Path: f.path, Kind: tool.Modified}
	if regular(f.now) {
		left, err := s.u.content(ctx, f.now)
		if err != nil {
			return ""
		}
		c.Before = &tool.Version{Size: f.now.Bytes, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(left)), nil }}
	}
	if at.n != nil && at.n.Mode().IsRegular() {
		r, size, err := open(at)
		if err != nil {
			return ""
		}
		defer r.Close()
		c.After = &tool.Version{Size: size, Open: func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(r, 0, size)), nil }}
	}
	text, _, _ := diff.Of(c, s.cwd, s.u.known.Finds)
	return text
}

// putBack stages the way back: first away with what the turn has made, from the
// bottom up, then everything else, from the top down.
func (s *staging) putBack(ctx context.Context) error {
	for _, f := range slices.Backward(s.way.files) { // what is in a directory stands behind it
		if f.now == nil || f.was != nil && typeOf(f.was) == typeOf(f.now) && typeOf(f.now) != fs.ModeSymlink {
			continue
		}
		at, err := s.find(f)
		if err == nil && at.n != nil {
			err = at.tree.Remove(at.n)
		}
		switch {
		case errors.Is(err, syscall.ENOTEMPTY) && f.was == nil:
			s.stays = append(s.stays, f.path)
		case errors.Is(err, syscall.ENOTEMPTY):
			s.conflicts = append(s.conflicts, conflict{path: f.path, how: "it holds other files now"})
		case err != nil:
			return fmt.Errorf("remove %s: %w", f.path, err)
		}
	}
	for _, f := range s.way.files {
		if f.was == nil {
			continue
		}
		at, err := s.find(f)
		switch {
		case err != nil:
			return err
		case at.dir == nil:
			s.conflicts = append(s.conflicts, conflict{path: f.path, how: at.how})
			continue
		}
		if err := s.restore(ctx, f, at); err != nil {
			return err
		}
	}
	return nil
}

// restore stages what there was before the turn.
func (s *staging) restore(ctx context.Context, f file, at place) (err error) {
	perm := permOf(f.was)
	switch typeOf(f.was) {
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
		err = at.tree.Symlink(at.dir, at.name, f.was.Target)
	case 0:
		if at.n != nil && sameContent(f.was, f.now) {
			err = at.tree.SetMode(at.n, perm)
			break
		}
		var content []byte
		if content, err = s.u.content(ctx, f.was); err == nil {
			err = at.tree.Put(at.dir, at.name, at.n, perm, content)
		}
	default:
		return s.way.refuse("%q was no file, directory or link", f.path)
	}
	switch {
	case errors.Is(err, session.ErrNoImage):
		return s.way.refuse("the content of %q before it is not kept: it was recorded by an older version, or has made room for newer ones", f.path)
	case err != nil:
		return fmt.Errorf("put back %s: %w", f.path, err)
	}
	return nil
}

// maxDiffs is how many bytes of differences a refusal shows.
const maxDiffs = 64 << 10

// changed is the result where files are not any more as the turn has left them.
func (s *staging) changed() tool.Result {
	var names []string
	var diffs strings.Builder
	for i, c := range s.conflicts {
		if i < maxNamed {
			names = append(names, fmt.Sprintf("%q (%s)", c.path, c.how))
		}
		if diffs.Len()+len(c.diff) <= maxDiffs {
			diffs.WriteString(c.diff)
		}
	}
	if more := len(s.conflicts) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	r := failed(tool.CodeChanged, tool.ValidationFailed,
		fmt.Sprintf("of turn %d these are not any more as they were left: %s", s.way.turn, strings.Join(names, ", ")),
		"put back what has changed since, or keep it and change what you want by hand")
	r.Err.Stdout = diffs.String()
	return r
}
