package walk

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/policy/gitconfig"
	"github.com/stockade-dev/stockade/host/rootedfs"
)

// maxSavedBytes is the default limit of the saved files together, and the limit of the saved
// links together, in bytes; more are an error.
const maxSavedBytes = 1 << 20

// savedFile is a closed file or link as it was before the command.
type savedFile struct {
	entry    int32 // index in Snapshot.entries
	mode     uint32
	names    uint64 // number of names of the file
	uid, gid int
	content  []byte // target, for a link
}

// SaveContent saves the content of closed files, for [Snapshot.Restore] at a tier where
// commands can change them. It fails if they have more than maxBytes together; 0 stands for 1
// MiB. Call it before the command starts.
func (s *Snapshot) SaveContent(maxBytes int) error {
	if maxBytes <= 0 {
		maxBytes = maxSavedBytes
	}
	return s.saveContent(unix.DT_REG, maxBytes)
}

// saveContent saves the closed files or links of a kind, DT_REG or DT_LNK.
func (s *Snapshot) saveContent(kind uint8, maxBytes int) (err error) {
	room := maxBytes
	s.each(func(_ root, _ dir, i int32) {
		e := &s.entries[i]
		if err != nil || e.flags&isClosed == 0 || e.kind != kind {
			return
		}
		err = s.inDir(e.dir, func(fd int) error {
			k, err := read(fd, s.name(e), kind, room)
			if err == nil {
				k.entry = i
				room -= len(k.content)
				s.saved = append(s.saved, k)
			}
			return err
		})
		switch {
		case errors.Is(err, unix.ENOENT):
			err = nil // gone meanwhile
		case errors.Is(err, unix.EFBIG):
			err = fmt.Errorf("keep %s: closed files have more than %d bytes together", s.path(i), maxBytes)
		case err != nil:
			err = fmt.Errorf("keep %s: %w", s.path(i), err)
		}
	})
	return err
}

// inDir opens directory d of the walk, following no links, calls do with it, and closes it.
func (s *Snapshot) inDir(d int32, do func(fd int) error) error {
	rel, r := s.rel(d)
	below, fi, err := rootedfs.Open(r.path)
	if err != nil {
		return err
	}
	defer below.Close()
	if st := rootedfs.StatOf(fi); st.Dev != r.dev || st.Ino != r.ino {
		return errReplaced(r.path)
	}
	top, err := below.Open(".")
	if err != nil {
		return err
	}
	defer top.Close()
	fd, _, err := openDir(int(top.Fd()), rel)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return do(fd)
}

// read reads a file or a link. If it has more than room bytes, the error is EFBIG.
func read(dir int, name string, kind uint8, room int) (savedFile, error) {
	if kind == unix.DT_LNK {
		buf := make([]byte, unix.PathMax)
		n, err := rootedfs.RetryEINTR(func() (int, error) { return unix.Readlinkat(dir, name, buf) })
		if err != nil {
			return savedFile{}, err
		}
		if n > room {
			return savedFile{}, unix.EFBIG
		}
		return savedFile{content: bytes.Clone(buf[:n])}, nil
	}
	fd, err := rootedfs.RetryEINTR(func() (int, error) {
		return unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return savedFile{}, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return savedFile{}, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return savedFile{}, errKind
	}
	content, err := io.ReadAll(io.LimitReader(f, int64(room)+1))
	if err == nil && len(content) > room {
		err = unix.EFBIG
	}
	return savedFile{mode: st.Mode & 0o7777, names: uint64(st.Nlink), uid: int(st.Uid), gid: int(st.Gid), content: content}, err
}

var (
	errKind  = errors.New("it is not a regular file")
	errNames = errors.New("the file has several names")
)

// Restored lists the effects of [Snapshot.Restore].
type Restored struct {
	Removed         Notes // new closed files that were removed
	NewRepositories Notes // new repositories that stay: directories
	PutBack         Notes // saved files and links that had been changed or removed, and are as before again
	Failed          Notes // files that could not be removed or restored, with the errors
}

// Notes holds the first 1,000 notes of a kind, and the number of all (Count).
type Notes struct {
	Notes []Note
	Count int
}

// Note is an absolute path, and the reason for its treatment; "": none.
type Note struct{ Path, Why string }

func (n *Notes) add(name string, why error) {
	n.Count++
	if len(n.Notes) < maxListed {
		note := Note{Path: name}
		if why != nil {
			note.Why = why.Error()
		}
		n.Notes = append(n.Notes, note)
	}
}

// Restore removes new closed files, and restores saved files that were changed or removed. It
// opens directories without following links, and changes nothing above the roots. Call it
// when all processes of the command have ended.
//
// A new repository stays, without files that git would run. Of its closed files only sample
// hooks stay, and a configuration with only harmless keys; these may also stay in old
// repositories. A file that was removed together with its directory is restored only if all
// content of the directory was closed. A removed .git is not restored.
func (s *Snapshot) Restore(c Changes) Restored {
	var out Restored
	stays := map[int32]bool{} // directories with something that stays
	for at := len(c.newClosed) - 1; at >= 0; at-- {
		i := c.newClosed[at]
		e := &c.now.entries[i]
		if e.flags&isGit != 0 {
			out.NewRepositories.add(c.now.path(i), nil)
			continue
		}
		why := errStays
		err := c.now.inDir(e.dir, func(fd int) error {
			flags := 0
			switch name := c.now.name(e); {
			case e.kind == unix.DT_DIR && stays[e.child]:
				return errStays
			case e.kind == unix.DT_DIR:
				flags = unix.AT_REMOVEDIR
			default:
				if why = c.now.whyDangerous(fd, e, name); why == nil {
					return errStays
				}
			}
			_, err := rootedfs.RetryEINTR(func() (int, error) { return 0, unix.Unlinkat(fd, c.now.name(e), flags) })
			return err
		})
		switch {
		case err == errStays:
			stays[e.dir] = true
		case err == nil && e.kind == unix.DT_DIR:
			out.Removed.add(c.now.path(i), nil)
		case err == nil:
			out.Removed.add(c.now.path(i), why)
		case !errors.Is(err, unix.ENOENT):
			out.Failed.add(c.now.path(i), err)
		}
	}
	for _, k := range s.saved {
		s.putBack(k, &out)
	}
	return out
}

// errStays means that [Snapshot.Restore] does not remove a file or directory.
var errStays = errors.New("it holds what stays")

// whyDangerous returns the reason why a new closed file must be removed; nil: it may stay.
func (s *Snapshot) whyDangerous(fd int, e *entry, name string) error {
	found, _ := s.rules(e.dir).Find(name)
	git := found.ReadOnly == nil || found.ReadOnly.OfGit() // nil below a repository with an unusual name
	hooks := s.dirs[e.dir].parent >= 0 && s.name(&s.entries[s.dirs[e.dir].entry]) == "hooks"
	switch {
	case !git:
	case e.kind == unix.DT_REG && hooks && strings.HasSuffix(name, ".sample"):
		return nil
	case e.kind == unix.DT_REG && name == "config":
		k, err := read(fd, name, unix.DT_REG, gitconfig.MaxBytes)
		if err != nil {
			return err
		}
		if k.names > 1 {
			return errNames // a change by another name would change this file
		}
		return gitconfig.Harmless(string(k.content))
	}
	if found.ReadOnly == nil {
		return errors.New("git runs what it names")
	}
	return errors.New(found.ReadOnly.Why)
}

// putBack restores a saved file if it was changed or removed, and notes that in out.
func (s *Snapshot) putBack(k savedFile, out *Restored) {
	e := &s.entries[k.entry]
	name := s.name(e)
	done := false
	put := func(fd int) error {
		now, err := read(fd, name, e.kind, len(k.content))
		if err == nil && now.mode == k.mode && bytes.Equal(now.content, k.content) {
			return nil
		}
		done = true
		temp := ".stockade-" + rand.Text()
		if err := k.write(fd, temp, e.kind); err != nil {
			return err
		}
		err = unix.Renameat(fd, temp, fd, name)
		if err != nil {
			_ = unix.Unlinkat(fd, temp, 0)
		}
		return err
	}
	err := s.inDir(e.dir, put)
	if errors.Is(err, unix.ENOENT) && !done && s.remake(e.dir) {
		err = s.inDir(e.dir, put)
	}
	switch {
	case err == nil && done:
		out.PutBack.add(s.path(k.entry), nil)
	case err != nil && (done || !errors.Is(err, unix.ENOENT)):
		out.Failed.add(s.path(k.entry), err)
	}
}

// remake makes the removed directory d again if all its content was closed, and reports
// success.
func (s *Snapshot) remake(d int32) bool {
	if s.dirs[d].parent < 0 || s.entries[s.dirs[d].entry].flags&isClosed == 0 {
		return false
	}
	e := &s.entries[s.dirs[d].entry]
	mkdir := func(fd int) error { return unix.Mkdirat(fd, s.name(e), 0o755) }
	err := s.inDir(e.dir, mkdir)
	if errors.Is(err, unix.ENOENT) && s.remake(e.dir) {
		err = s.inDir(e.dir, mkdir)
	}
	return err == nil
}

func (k savedFile) write(dir int, name string, kind uint8) error {
	if kind == unix.DT_LNK {
		return unix.Symlinkat(string(k.content), dir, name)
	}
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(k.content)
	if os.Geteuid() == 0 {
		err = errors.Join(err, f.Chown(k.uid, k.gid))
	}
	err = errors.Join(err, unix.Fchmod(fd, k.mode), f.Close())
	if err != nil {
		_ = unix.Unlinkat(dir, name, 0)
	}
	return err
}
