package rootedfs

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// RemoveAll is [os.RemoveAll] that also removes directories without write or search
// permission, such as those of Go's module cache. It follows no link. Its time grows with the
// number of names, and not with their depth.
func RemoveAll(dir string) error {
	up, name := filepath.Split(filepath.Clean(dir))
	parent, err := unix.Open(cmp.Or(up, "."), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(parent)
		err = removeAt(parent, name)
	}
	if err != nil && err != unix.ENOENT {
		return &fs.PathError{Op: "remove", Path: dir, Err: err}
	}
	return nil
}

// remover removes a tree. It moves each directory that is not empty to a directory of its own,
// the pile, and then empties the directories there one after the other.
type remover struct {
	top      int    // descriptor of the tree's top directory
	pile     int    // descriptor of a directory in top; -1: there is none
	pileName string // name of the pile in top; empty: there is none
	lifted   uint64 // number of directories that were moved to the pile; their names there are 0, 1, ...
	buf      []byte // for listing a directory
	err      error  // the first error
}

const (
	maxPasses   = 100      // listings of one directory, in which others may go on making files
	removeBytes = 32 << 10 // bytes of remover.buf
)

// removeAt removes a name in the directory parent, with everything below.
func removeAt(parent int, name string) error {
	if err := unlink(parent, name); err != unix.ENOTEMPTY {
		return err
	}
	r := &remover{pile: -1, buf: make([]byte, removeBytes)}
	err := addOwnerRights(parent, name)
	if err == nil {
		r.top, err = openDirAt(parent, name)
	}
	if err != nil {
		return err
	}
	defer unix.Close(r.top)
	r.empty(r.top)
	if r.pile >= 0 {
		defer unix.Close(r.pile)
		for next := uint64(0); next < r.lifted; next++ {
			r.recordError(r.clear(strconv.FormatUint(next, 10)))
		}
		r.recordError(unlink(r.top, r.pileName))
	}
	if err := unlink(parent, name); err != nil {
		return cmp.Or(r.err, err)
	}
	return nil
}

// clear empties a directory of the pile, and removes it.
func (r *remover) clear(name string) error {
	dir, err := openDirAt(r.pile, name)
	if err == nil {
		r.empty(dir)
		unix.Close(dir)
	}
	return unlink(r.pile, name)
}

// empty removes all entries of a directory. It lists the directory again as long as that
// helps: some file systems skip names when others are removed during the listing.
func (r *remover) empty(dir int) {
	for pass, some := 0, true; some && pass < maxPasses; pass++ {
		some = false
		if _, err := unix.Seek(dir, 0, io.SeekStart); err != nil {
			r.recordError(err)
			return
		}
		for {
			n, err := RetryEINTR(func() (int, error) { return unix.ReadDirent(dir, r.buf) })
			if err != nil || n <= 0 {
				r.recordError(err)
				break
			}
			_, _, names := unix.ParseDirent(r.buf[:n], -1, nil)
			for _, name := range names {
				if name == r.pileName && dir == r.top {
					continue
				}
				err := unlink(dir, name)
				if err == unix.ENOTEMPTY {
					err = r.lift(dir, name)
				}
				r.recordError(err)
				some = some || err == nil
			}
		}
	}
}

func (r *remover) lift(dir int, name string) error {
	if r.pile < 0 {
		r.pileName = ".stockade-" + rand.Text()
		err := unix.Mkdirat(r.top, r.pileName, 0o700)
		if err == nil {
			r.pile, err = openDirAt(r.top, r.pileName)
		}
		if err != nil {
			return err
		}
	}
	// A move writes the ".." of the directory, so the owner needs write permission.
	err := addOwnerRights(dir, name)
	if err == nil {
		err = unix.Renameat(dir, name, r.pile, strconv.FormatUint(r.lifted, 10))
	}
	if err == nil {
		r.lifted++
	}
	return err
}

// recordError sets r.err to the first error. A missing file is no error.
func (r *remover) recordError(err error) {
	if err != nil && err != unix.ENOENT && r.err == nil {
		r.err = err
	}
}

// unlink removes a file, a link or an empty directory; ENOTEMPTY for one with entries.
func unlink(dir int, name string) error {
	try := func(flags int) error {
		_, err := RetryEINTR(func() (int, error) { return 0, unix.Unlinkat(dir, name, flags) })
		return err
	}
	err := try(0)
	if err != unix.EISDIR && err != unix.EPERM {
		return err
	}
	switch dirErr := try(unix.AT_REMOVEDIR); dirErr {
	case unix.ENOTDIR:
		return err
	case unix.EEXIST:
		return unix.ENOTEMPTY
	default:
		return dirErr
	}
}

func openDirAt(dir int, name string) (int, error) {
	return RetryEINTR(func() (int, error) {
		return unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
}

// addOwnerRights gives the owner of a directory all permissions.
func addOwnerRights(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&0o700 == 0o700 {
		return err
	}
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), st.Mode&0o777|0o700)
}

func ownedByUser(fi os.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// removeDiscarded calls [RemoveAll], unless another process is removing the tree.
func removeDiscarded(dir string) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err == nil { // after an error the directory may lack read permission, which RemoveAll adds
		defer f.Close()
		if errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
			return
		}
	}
	_ = RemoveAll(dir)
}
