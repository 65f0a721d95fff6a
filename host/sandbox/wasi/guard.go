package wasi

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// guard keeps a guest away from hidden paths inside a mount: masked paths, system directories,
// and the directories of nested mounts, which are reached under their own name and with their
// own rights only.
//
// An existing path is known by its identity, so that no other name for it helps: a symbolic
// link, a bind mount, a renamed parent. A path that may come into existence is known by name,
// as a trail from a directory that exists. A guarded mount is walked one name at a time,
// because a single look-up by the host would not tell which directories it passed through.
type guard struct {
	hidden []os.FileInfo // existing hidden files and directories
	trails []trail       // ways to hidden names
}

// trail is the way to a hidden path: names, one below the other, from the directory dir on.
type trail struct {
	dir   os.FileInfo
	names []string
}

func (g *guard) hides(fi os.FileInfo) bool {
	if g == nil {
		return false
	}
	for _, h := range g.hidden {
		if rootedfs.SameFile(h, fi) {
			return true
		}
	}
	return false
}

// hidesInode reports whether a file with an inode number may be hidden.
func (g *guard) hidesInode(ino uint64) bool {
	if g == nil {
		return false
	}
	for _, h := range g.hidden {
		if rootedfs.StatOf(h).Ino == ino {
			return true
		}
	}
	return false
}

// trailsIn returns the paths to hidden names from the directory dir. Some are trails of g that
// start at dir. The others come from parent, the paths from the parent directory: those whose
// first name is name, the name of dir, without this first name.
func (g *guard) trailsIn(dir os.FileInfo, parent [][]string, name string) [][]string {
	if g == nil {
		return nil
	}
	var out [][]string
	for _, t := range g.trails {
		if rootedfs.SameFile(t.dir, dir) {
			out = append(out, t.names)
		}
	}
	for _, names := range parent {
		if len(names) > 1 && sameName(names[0], name) {
			out = append(out, names[1:])
		}
	}
	return out
}

// isHiddenName reports whether name, in a directory with these trails, is hidden itself. It
// compares names with [sameName].
func isHiddenName(trails [][]string, name string) bool {
	for _, names := range trails {
		if len(names) == 1 && sameName(names[0], name) {
			return true
		}
	}
	return false
}

// leadsToHidden reports whether name, in a directory with these trails, is on the way to a
// hidden path. A guest can use such a name, but neither rename nor remove nor replace it: the
// next call looks for the masked path by its name and would not find a path that was moved.
func leadsToHidden(trails [][]string, name string) bool {
	for _, names := range trails {
		if len(names) > 1 && sameName(names[0], name) {
			return true
		}
	}
	return false
}

// maxHostLinks limits the symbolic links in a path of the host; more are an error of [New].
const maxHostLinks = 40

// lstatCache caches the results of os.Lstat while several host paths are followed: most
// masked paths are below the same few directories.
type lstatCache map[string]lstatResult

type lstatResult struct {
	info os.FileInfo
	err  error
}

func (l lstatCache) lstat(name string) (os.FileInfo, error) {
	found, ok := l[name]
	if !ok {
		found.info, found.err = os.Lstat(name)
		l[name] = found
	}
	return found.info, found.err
}

// follow looks up an absolute path of the host name by name. It returns a trail from every
// directory that it passes, also by way of symbolic links, and the file at the end; nil: there
// is none or it cannot be seen.
func (l lstatCache) follow(p string) (trails []trail, end os.FileInfo, err error) {
	root := filepath.VolumeName(p) + string(filepath.Separator)
	cur, todo := root, split(p[len(root):])
	for links := 0; len(todo) > 0; {
		dir, err := l.lstat(cur)
		if err != nil || !dir.IsDir() {
			return trails, nil, nil
		}
		name, rest := todo[0], todo[1:]
		if name == ".." {
			cur, todo = filepath.Dir(cur), rest
			continue
		}
		trails = append(trails, trail{dir, todo})
		next := filepath.Join(cur, name)
		fi, err := l.lstat(next)
		if err != nil {
			return trails, nil, nil
		}
		if fi.Mode().Type() != fs.ModeSymlink {
			cur, todo = next, rest
			continue
		}
		if links++; links > maxHostLinks {
			return nil, nil, errors.New("too many symbolic links")
		}
		target, err := os.Readlink(next)
		if err != nil {
			return trails, nil, nil
		}
		if filepath.IsAbs(target) {
			root = filepath.VolumeName(target) + string(filepath.Separator)
			cur, target = root, target[len(root):]
		}
		todo = append(split(target), rest...)
	}
	end, err = l.lstat(cur)
	if err != nil {
		return trails, nil, nil
	}
	return trails, end, nil
}

// passThrough reports whether any of the trails starts in dir.
func passThrough(trails []trail, dir os.FileInfo) bool {
	return slices.ContainsFunc(trails, func(t trail) bool { return rootedfs.SameFile(t.dir, dir) })
}

// split returns the names in the path p, without empty ones and ".".
func split(p string) []string {
	p = filepath.ToSlash(p)
	names := make([]string, 0, strings.Count(p, "/")+1)
	for name := range strings.SplitSeq(p, "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return names
}

// maxSteps limits the names that one look-up may pass; more are ELOOP. After a ".." in a symbolic
// link, [mount.walk] starts again from the mount, and the names count once more.
const maxSteps = 2 * MaxPath

// walk finds the file rel one name at a time, so that every symbolic link is seen. shown is
// the guest's name, and slash is set if the file must be a directory. Each directory is opened
// by its name in its parent, and must be the file that was seen there; so exchanging a
// directory for a symbolic link does not lead past the guard. steps is the number of names
// looked up before the last one. d caches the directories of the latest walk; it may be nil.
func (m *mount) walk(rel, shown string, end linkMode, slash bool, d *dirCache) (p place, steps int, errno Errno) {
	p = place{m: m, dir: m.root, name: ".", info: m.info, shown: shown, slash: slash, walked: true, rel: "."}
	var done []string // the names from the root of the mount to p.dir
	defer func() {
		if errno != 0 {
			p.close()
			p = place{}
		} else if len(done) > 0 {
			p.rel = strings.Join(done, "/")
		}
	}()
	p.trails = m.guard.trailsIn(m.info, nil, "")
	todo := split(rel)
	done = make([]string, 0, len(todo))
	links := 0
	for ; len(todo) > 0; steps++ {
		if steps > maxSteps {
			return p, steps, ELOOP
		}
		name, last := todo[0], len(todo) == 1
		if name == ".." {
			if len(done) == 0 {
				return p, steps, errOutside
			}
			// The directory may have been moved since it was opened, so its parent is
			// looked up again from the mount.
			todo = append(append([]string(nil), done[:len(done)-1]...), todo[1:]...)
			p.close()
			p.dir, p.cached, p.info, p.trails, done = m.root, false, m.info, m.guard.trailsIn(m.info, nil, ""), nil
			continue
		}
		if isHiddenName(p.trails, name) {
			return p, steps, errOutside
		}
		if len(done) > 0 && !p.cached {
			d = nil // the rest is too deep to be cached, or somewhere else
		}
		if next, ok := d.verifiedDir(m, len(done), name); ok && !last {
			p.enter(next, true)
			done, todo = append(done, name), todo[1:]
			continue
		}
		if _, ok := p.dir.(rootedfs.ContentRoot); ok && last && end == openDirectly {
			p.name, p.info, p.unexamined, p.steps = name, nil, true, steps
			return p, steps, 0
		}
		fi, err := p.dir.Lstat(name)
		if err != nil {
			if last && errors.Is(err, fs.ErrNotExist) {
				p.name, p.info = name, nil
				return p, steps, 0
			}
			return p, steps, errnoOf(err)
		}
		if m.guard.hides(fi) {
			return p, steps, errOutside
		}
		switch {
		case fi.Mode().Type() == fs.ModeSymlink && (!last || end.follows(slash)):
			if links++; links > m.root.MaxSymlinks() {
				return p, steps, ELOOP
			}
			target, err := p.dir.Readlink(name)
			if err != nil {
				return p, steps, errnoOf(err)
			}
			names, errno := p.enterLink(target, last)
			if errno != 0 {
				return p, steps, errno
			}
			todo = append(names, todo[1:]...)
			continue
		case last:
			p.name, p.info = name, fi
			return p, steps, 0
		case !fi.IsDir():
			return p, steps, ENOTDIR
		}
		next, kept := d.matchingDir(m, len(done), name, fi)
		if !kept {
			dir, opened, err := rootedfs.OpenDir(p.dir, name)
			if err != nil {
				return p, steps, errnoOf(err)
			}
			if !rootedfs.SameFile(fi, opened) {
				_ = dir.Close()
				return p, steps, errReplaced
			}
			next = cachedDir{name, dir, opened, m.guard.trailsIn(opened, p.trails, name)}
			kept = d.add(m, len(done), next)
		}
		p.enter(next, kept)
		done, todo = append(done, name), todo[1:]
	}
	p.name = "." // the mount itself, or a symbolic link that ended in ".."
	return p, steps, 0
}

// enterLink returns the names in the target of a symbolic link at p. An absolute target is an
// error. last is set if the link is the last name of the path.
func (p *place) enterLink(target string, last bool) ([]string, Errno) {
	if target == "" || filepath.IsAbs(target) || target[0] == '/' || filepath.VolumeName(target) != "" {
		return nil, errOutside
	}
	if last {
		p.viaLink = true
		p.slash = p.slash || strings.HasSuffix(target, "/")
	}
	return split(target), 0
}

// enter makes next the directory of p, for the next name. cached: a dirCache closes it.
func (p *place) enter(next cachedDir, cached bool) {
	p.close()
	p.dir, p.cached, p.info, p.trails = next.root, cached, next.info, next.trails
}
