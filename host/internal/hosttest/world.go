// Package hosttest has a directory of the host for tests: a workspace, and files beside it
// that nobody may reach from there.
package hosttest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/tool"
)

// Canary is the content of files that nobody may read.
const Canary = "canary: not for guests"

// World is a directory of the host for one test. Its methods take paths relative to Base,
// with slashes, and end the test on an error.
type World struct {
	T    *testing.T
	Base string

	newFile, newDir fs.FileMode // modes of new files and directories under the umask
}

// New returns a world with
//
//	ws/            the workspace
//	   f.txt       "inside"
//	   d/g.txt     "deeper"
//	out/           what nobody was granted
//	   secret      the canary
//	   dir/
func New(t *testing.T) *World {
	t.Helper()
	base, err := os.MkdirTemp("", "wasi") // short: it also holds a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if base, err = filepath.EvalSymlinks(base); err != nil {
		t.Fatal(err)
	}
	w := &World{T: t, Base: base}
	w.Dir("ws/d")
	w.Dir("out/dir")
	w.File("ws/f.txt", "inside")
	w.File("ws/d/g.txt", "deeper")
	w.File("out/secret", Canary)
	fi, err := os.Stat(w.Path("out/secret"))
	if err != nil {
		t.Fatal(err)
	}
	w.newFile = fi.Mode().Perm()
	if fi, err = os.Stat(w.Path("out/dir")); err != nil {
		t.Fatal(err)
	}
	w.newDir = fi.Mode()
	return w
}

// Path returns the path of p on the host.
func (w *World) Path(p string) string { return filepath.Join(w.Base, filepath.FromSlash(p)) }

// Dir makes a directory, and missing directories above.
func (w *World) Dir(p string) {
	w.T.Helper()
	if err := os.MkdirAll(w.Path(p), 0o777); err != nil {
		w.T.Fatal(err)
	}
}

// File writes a file in place, and makes missing directories above.
func (w *World) File(p, content string) {
	w.T.Helper()
	w.Dir(filepath.Dir(p))
	if err := os.WriteFile(w.Path(p), []byte(content), 0o666); err != nil {
		w.T.Fatal(err)
	}
}

// Link makes a symbolic link. A target that starts with "out" becomes absolute.
func (w *World) Link(p, target string) {
	w.T.Helper()
	if strings.HasPrefix(target, "out") {
		target = w.Path(target)
	}
	if err := os.Symlink(target, w.Path(p)); err != nil {
		w.T.Fatal(err)
	}
}

// HardLink gives a file another name.
func (w *World) HardLink(p, existing string) {
	w.T.Helper()
	if err := os.Link(w.Path(existing), w.Path(p)); err != nil {
		w.T.Fatal(err)
	}
}

// Rename renames a file.
func (w *World) Rename(from, to string) {
	w.T.Helper()
	if err := os.Rename(w.Path(from), w.Path(to)); err != nil {
		w.T.Fatal(err)
	}
}

// Content returns the content of a file.
func (w *World) Content(p string) string {
	w.T.Helper()
	b, err := os.ReadFile(w.Path(p))
	if err != nil {
		w.T.Error(err)
	}
	return string(b)
}

// Contents returns the contents of all files in a directory.
func (w *World) Contents(dir string) (out []string) {
	w.T.Helper()
	entries, err := os.ReadDir(w.Path(dir))
	if err != nil {
		w.T.Fatal(err)
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			out = append(out, w.Content(dir+"/"+e.Name()))
		}
	}
	return out
}

// State returns a description of each file, by its path, with everything that might change.
func (w *World) State() map[string]string {
	w.T.Helper()
	state := map[string]string{}
	w.walk(w.Base, func(p string, fi os.FileInfo) error {
		desc := fmt.Sprint(fi.Mode(), " ", fi.ModTime().UnixNano())
		switch {
		case fi.Mode().IsRegular():
			content, err := readFile(p)
			if err != nil {
				return err
			}
			desc += fmt.Sprintf(" %d %x", fi.Size(), sha256.Sum256(content))
		case fi.Mode().Type() == fs.ModeSymlink:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			desc += " -> " + target
		}
		rel, err := filepath.Rel(w.Base, p)
		state[rel] = desc
		return err
	})
	return state
}

// walk visits everything below a directory. Where the mode of a directory forbids us to look,
// it changes the mode meanwhile.
func (w *World) walk(top string, visit func(p string, fi os.FileInfo) error) {
	w.T.Helper()
	var modes []func() error
	err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err == nil && fi.IsDir() && fi.Mode()&0o500 != 0o500 {
			err = os.Chmod(p, fi.Mode()|0o500)
			modes = append(modes, func() error { return os.Chmod(p, fi.Mode()) })
		}
		if err != nil {
			return err
		}
		return visit(p, fi)
	})
	for _, giveBack := range slices.Backward(modes) {
		err = errors.Join(err, giveBack())
	}
	if err != nil {
		w.T.Fatal(err)
	}
}

// readFile is [os.ReadFile] that returns "unreadable" for a file without read permission.
func readFile(p string) ([]byte, error) {
	content, err := os.ReadFile(p)
	if errors.Is(err, fs.ErrPermission) {
		return []byte("unreadable"), nil
	}
	return content, err
}

// StateButDirTimes is State without the times of directories, which a commit changes even if
// it is undone.
func (w *World) StateButDirTimes() map[string]string {
	w.T.Helper()
	state := w.State()
	for p, desc := range state {
		if strings.HasPrefix(desc, "d") {
			state[p] = strings.Fields(desc)[0]
		}
	}
	return state
}

// Outside returns the part of StateButDirTimes that nobody may change.
func (w *World) Outside() map[string]string {
	w.T.Helper()
	state := w.StateButDirTimes()
	maps.DeleteFunc(state, func(p, _ string) bool { return p != "out" && !strings.HasPrefix(p, "out/") })
	return state
}

// CheckUnchanged fails the test if State differs from before.
func (w *World) CheckUnchanged(before map[string]string) {
	w.T.Helper()
	if diff := cmp.Diff(before, w.State()); diff != "" {
		w.T.Errorf("the host was changed (-before +after):\n%s", diff)
	}
}

// ModeText returns the permissions as text; empty for those of new files.
func (w *World) ModeText(mode fs.FileMode) string {
	if mode.Perm() == w.newFile {
		return ""
	}
	return mode.Perm().String()
}

// Tree returns a description of each file of the workspace, by its path. It leaves out the
// modes of new files and directories.
func (w *World) Tree() map[string]string {
	w.T.Helper()
	out := map[string]string{}
	w.walk(w.Path("ws"), func(p string, fi os.FileInfo) error {
		rel, err := filepath.Rel(w.Path("ws"), p)
		if err != nil {
			return err
		}
		switch {
		case fi.IsDir() && fi.Mode() != w.newDir:
			out[rel] = "dir " + fi.Mode().String()
		case fi.IsDir():
			out[rel] = "dir"
		case fi.Mode().Type() == fs.ModeSymlink:
			target, err := os.Readlink(p)
			out[rel] = "-> " + target
			return err
		default:
			content, err := readFile(p)
			if err != nil {
				return err
			}
			out[rel] = "file " + w.ModeText(fi.Mode()) + " " + string(content)
		}
		return nil
	})
	return out
}

// Within fails the test if op takes longer than limit.
func Within(t *testing.T, limit time.Duration, op func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		op()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		t.Fatal("the host is blocked")
	}
}

// Promptly fails the test if op does not return at once.
func Promptly(t *testing.T, op func()) {
	t.Helper()
	Within(t, 10*time.Second, op)
}

// FormatChanges returns the changes of a stage as text, one line each, with paths relative to
// ws.
func (w *World) FormatChanges(changes []tool.Change, err error) []string {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
	out := []string{}
	for _, c := range changes {
		rel, _ := filepath.Rel(w.Path("ws"), c.Path)
		line := fmt.Sprint(c.Kind, " ", rel)
		if c.From != "" {
			from, _ := filepath.Rel(w.Path("ws"), c.From)
			line += " from " + from
		}
		for _, v := range []*tool.Version{c.Before, c.After} {
			if v == nil || !v.Mode.IsRegular() {
				line += " -"
				continue
			}
			r, err := v.Open()
			if err != nil {
				w.T.Fatal(err)
			}
			b, err := io.ReadAll(r)
			if err != nil || int64(len(b)) != v.Size {
				w.T.Errorf("%s: %d bytes of %d: %v", c.Path, len(b), v.Size, err)
			}
			r.Close()
			line += fmt.Sprintf(" %q", b)
		}
		out = append(out, line)
	}
	return out
}
