//go:build unix

package policyfile

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/shellword"
)

// open opens the file without blocking, and checks it and the directories above it.
func (p Place) open() (*os.File, error) {
	dir := unix.AT_FDCWD
	name := p.Path
	flags := unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY
	var above []*os.File
	defer func() {
		for _, f := range above {
			f.Close()
		}
	}()
	if p.Root != "" {
		below, ok := strings.CutPrefix(path.Clean(p.Path), strings.TrimSuffix(path.Clean(p.Root), "/")+"/")
		if !ok || !path.IsAbs(p.Root) {
			return nil, errPlace
		}
		flags |= unix.O_NOFOLLOW
		steps := append([]string{""}, strings.Split(below, "/")...)
		name = steps[len(steps)-1]
		at := p.Root
		for _, step := range steps[:len(steps)-1] {
			var fd int
			var err error
			if step == "" {
				fd, err = unix.Open(p.Root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			} else {
				at = path.Join(at, step)
				fd, err = unix.Openat(dir, step, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			}
			if err != nil {
				return nil, openError(at, err)
			}
			above = append(above, os.NewFile(uintptr(fd), at))
			dir = fd
		}
	}
	if p.Root == "" && p.Owner != Anybody {
		d, err := os.Open(filepath.Dir(p.Path))
		if err != nil {
			return nil, p.missing(err)
		}
		above = append(above, d)
	}
	fd, err := unix.Openat(dir, name, flags, 0)
	if err != nil {
		err = openError(p.Path, err)
		for _, d := range above { // somebody who may write to one may have removed the file
			err = cmp.Or(p.check(d, d.Name(), true), err)
		}
		return nil, p.missing(err)
	}
	f := os.NewFile(uintptr(fd), p.Path)
	err = p.check(f, p.Path, false)
	for _, d := range above { // only now: without a file, the owners of the directories do not matter
		if err == nil {
			err = p.check(d, d.Name(), true)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// quotePath returns a path as one word of a command line.
func quotePath(name string) string {
	w, _ := shellword.Quote(name) // a path has no NUL
	return w
}

// missing returns the error of a file that could not be opened. If a link on its path leads to
// nothing, the error is not fs.ErrNotExist: somebody wanted a policy to apply.
func (p Place) missing(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	name := p.Path
	info, lerr := os.Lstat(name)
	for lerr != nil && name != filepath.Dir(name) {
		name = filepath.Dir(name)
		info, lerr = os.Lstat(name)
	}
	if lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
		if _, serr := os.Stat(name); serr != nil {
			return refuse(name, "it is a symbolic link that leads nowhere; mend the link, or remove it: rm %s", quotePath(name))
		}
	}
	return err
}

func openError(name string, err error) error {
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK) {
		return refuse(name, "it is a symbolic link, or one is on the way to it; it has to be a file at its place")
	}
	return &fs.PathError{Op: "read", Path: name, Err: err}
}

// isUserGroup reports whether the group of a file with this mode is the private group of the
// user. Many systems give each user such a group, with the number of the user, and make files
// writable for it (umask 002). root has none.
func (p Place) isUserGroup(st *unix.Stat_t, mode uint32) bool {
	return p.Root == "" && p.Owner != rootUID && int(st.Uid) == p.Owner && st.Gid == st.Uid && mode&0o002 == 0
}

// check checks the type, owner and permissions of f, an open file or directory. It does not
// follow name again, which may lead to another file now; name is for messages.
func (p Place) check(f *os.File, name string, isDir bool) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return &fs.PathError{Op: "read", Path: name, Err: err}
	}
	mode := uint32(st.Mode)
	if !isDir && mode&unix.S_IFMT != unix.S_IFREG {
		return refuse(name, "it is not a regular file")
	}
	if p.Owner == Anybody {
		return nil
	}
	switch {
	case int(st.Uid) != p.Owner && st.Uid != rootUID:
		return refuse(name, "it belongs to user %d; only %d may own it: look at what it holds, then, as root: chown %d %s", st.Uid, p.Owner, p.Owner, quotePath(name))
	case p.Root == "" && isDir && mode&unix.S_ISVTX != 0:
		// In a sticky directory nobody can remove the files of others.
	case mode&0o022 != 0 && !p.isUserGroup(&st, mode):
		return refuse(name, "others than its owner may write to it (mode %04o); take that away: chmod go-w %s", mode&0o7777, quotePath(name))
	case p.Root != "" && !isDir && st.Nlink != 1:
		return refuse(name, "it has %d names; it has to have one", st.Nlink)
	}
	return checkACL(f, name)
}
