package jail

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/beneath"
	"github.com/stockade-dev/stockade/host/jail/wire"
)

const (
	// keepLayers is how long layers that nobody uses are kept.
	keepLayers = 30 * 24 * time.Hour
	// maxLayers is how many bytes the layers of a workspace may have. They are
	// counted when they are used and that has not been done for measureLayers.
	maxLayers     = 4 << 30
	measureLayers = time.Hour
	// once is the beginning of the names of what one command has for itself.
	once = "once-"
)

// layerStore is the name of the directory where the layers of a workspace are kept.
// What was written over something is of no use alone.
func layerStore(parent, home, workspace string, layered bool) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%v", home, workspace, layered))
	return filepath.Join(parent, hex.EncodeToString(sum[:16]))
}

// held are layers that nobody else uses until they are released.
type held struct {
	layers  []wire.Layer
	kept    bool // they are those of the workspace, and will be there for the next command
	release func()
}

// holdLayers gives layers their directories: those that are kept in store, or new
// ones that will be removed if another command has these.
func holdLayers(store string, layers []wire.Layer) (held, error) {
	parent := filepath.Dir(store)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return held{}, err
	}
	parent, err := filepath.EvalSymlinks(parent) // the helper follows no link
	if err != nil {
		return held{}, err
	}
	store = filepath.Join(parent, filepath.Base(store))
	h := held{kept: true}
	l, err := tryLock(store)
	if err != nil {
		return held{}, err
	}
	if l == nil {
		h.kept = false
		store = filepath.Join(parent, once+rand.Text())
		if l, err = tryLock(store); err != nil {
			return held{}, err
		}
		if l == nil {
			return held{}, fmt.Errorf("%s is in use", store)
		}
	}
	h.release = func() {
		for _, l := range h.layers { // who cleans up should be able to
			_ = os.Chmod(filepath.Join(l.Work, "work"), 0o700)
		}
		if !h.kept && beneath.Discard(store, parent) == nil {
			_ = os.Remove(l.Path())
		}
		_ = l.Unlock()
	}
	if err := trusted(store); err != nil {
		h.release()
		return held{}, err
	}
	for _, layer := range layers {
		if err := makeLayer(&layer, filepath.Join(store, filepath.Base(layer.Path))); err != nil {
			h.release()
			return held{}, err
		}
		h.layers = append(h.layers, layer)
	}
	return h, nil
}

// makeLayer makes the directories of a layer in dir. What it has written is kept,
// and each mount needs a new directory to work in.
func makeLayer(l *wire.Layer, dir string) error {
	st, err := os.Stat(l.Path)
	l.New = errors.Is(err, fs.ErrNotExist)
	if err != nil && !l.New {
		return err
	}
	mode := fs.FileMode(0o755)
	if !l.New {
		mode = st.Mode().Perm()
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	old, _ := filepath.Glob(filepath.Join(dir, "work-*"))
	parent := filepath.Dir(filepath.Dir(dir))
	for _, name := range old {
		_ = beneath.Discard(name, parent)
	}
	l.Upper = filepath.Join(dir, "upper")
	// What was written over something, which is gone by now, is a part of it, with
	// marks of what was removed.
	l.Lower = l.Path
	nothing := filepath.Join(dir, "nothing")
	if !l.New {
		if os.Remove(nothing) == nil {
			unveil(l.Upper)
		}
	} else if l.Lower = nothing; !exists(nothing) {
		if err := errors.Join(beneath.Discard(l.Upper, parent), os.Mkdir(nothing, 0o700)); err != nil {
			return err
		}
	}
	if err := os.Mkdir(l.Upper, 0o700); err == nil {
		err = os.Chmod(l.Upper, mode) // the layer has the mode of its upper directory
		if err != nil {
			return err
		}
	} else if !os.IsExist(err) {
		return err
	}
	l.Work, err = os.MkdirTemp(dir, "work-")
	return err
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// unveil has the directories of a layer that was written over nothing not hide what is
// at their places by now.
func unveil(upper string) {
	entries, _ := os.ReadDir(upper)
	for _, e := range entries {
		if e.IsDir() {
			_ = unix.Lremovexattr(filepath.Join(upper, e.Name()), "user.overlay.opaque")
		}
	}
}

// trusted makes a directory for layers, or empties it: after a crash of the system
// nobody knows what is in them, because nothing waits for the disk. Its file
// "boot" says which boot they are of, and its time is when that was looked at.
func trusted(store string) error {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	mark := filepath.Join(store, "boot")
	have, err := os.ReadFile(mark)
	ok := err == nil && string(have) == string(boot)
	if ok {
		st, err := os.Stat(mark)
		if err == nil && time.Since(st.ModTime()) < measureLayers {
			return nil
		}
		ok = size(store) <= maxLayers
	}
	if !ok {
		if err := errors.Join(beneath.Discard(store, filepath.Dir(store)), os.Mkdir(store, 0o700)); err != nil {
			return err
		}
	}
	sweepLayers(filepath.Dir(store))
	return os.WriteFile(mark, boot, 0o600)
}

// size is how many bytes there are in a directory, on the disk.
func size(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if d == nil {
			return err
		}
		if info, err := d.Info(); err == nil {
			n += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		if n > maxLayers {
			return fs.SkipAll
		}
		return nil
	})
	return n
}

// sweepLayers removes what nobody has used for long, and what was for one command
// of a process that is gone.
func sweepLayers(parent string) {
	locks, _ := filepath.Glob(filepath.Join(parent, "*.lock"))
	for _, name := range locks {
		store := strings.TrimSuffix(name, ".lock")
		st, err := os.Stat(filepath.Join(store, "boot"))
		if err == nil && time.Since(st.ModTime()) < keepLayers && !strings.HasPrefix(filepath.Base(store), once) {
			continue
		}
		l, err := tryLock(store)
		if err != nil || l == nil {
			continue
		}
		if beneath.Discard(store, parent) == nil {
			_ = os.Remove(name)
		}
		_ = l.Unlock()
	}
	beneath.Sweep(parent)
}

// tryLock holds the lock of a store; nil if another does. The lock goes with the
// process.
func tryLock(store string) (*flock.Flock, error) {
	for {
		l := flock.New(store + ".lock")
		ok, err := l.TryLock()
		if err != nil || !ok {
			return nil, err
		}
		// Who sweeps may have removed the file between our opening and our locking it.
		ours, err := l.Stat()
		there, statErr := os.Stat(l.Path())
		if err == nil && statErr == nil && os.SameFile(ours, there) {
			return l, nil
		}
		_ = l.Unlock()
	}
}
