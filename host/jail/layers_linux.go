package jail

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/rootedfs"
)

const (
	// maxUnusedAge is the time for which unused layers of a workspace are kept.
	maxUnusedAge = 30 * 24 * time.Hour
	// remeasureAfter is the time for which measured sizes are believed.
	remeasureAfter = time.Hour
	// oncePrefix is the prefix of the directories that belong to one command.
	oncePrefix = "once-"
)

// layerStore returns the directory in parent where the layers of a workspace are kept. layered
// is a part of its name: a layer that was written over a directory is of no use without it.
func layerStore(parent, home, workspace string, layered bool) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%v\x00kept", home, workspace, layered)) // "kept": older stores have another form
	return filepath.Join(parent, hex.EncodeToString(sum[:16]))
}

// layerSet is the layers of one command: what other commands have written, in a store that stays
// while its lock is held, and directories for what the command itself writes. These are moved
// into the store once it is known that they may be kept.
type layerSet struct {
	storeDir   string
	lock       *flock.Flock // of the store, shared with others
	dir        string       // the command's own directory, in the store
	layers     []commandLayer
	layerLimit diskUse // the limit of a layer
	totalLimit diskUse // the limit of all layers of all workspaces together
	totalSize  diskUse // the size of all layers when the command began
}

type commandLayer struct {
	layer
	wire.Layer
	storedDir   string // its directory in the store
	initialSize diskUse
	// direct says that no overlay could be mounted over kept: the command writes into it.
	direct bool
}

// newLayerSet makes the directories for the layers of a command.
func newLayerSet(store string, layers []layer) (_ *layerSet, err error) {
	if err := os.MkdirAll(filepath.Dir(store), 0o700); err != nil {
		return nil, err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(store)) // the helper follows no link
	if err != nil {
		return nil, err
	}
	h := &layerSet{storeDir: filepath.Join(parent, filepath.Base(store))}
	h.dir = filepath.Join(h.storeDir, oncePrefix+rand.Text())
	if h.lock, err = lockStore(h.storeDir, h.prepare); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			h.release()
		}
	}()
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		return nil, err
	}
	if err := h.fit(); err != nil {
		return nil, err
	}
	have := sizesOf(h.storeDir)
	for _, s := range layers {
		l, err := h.makeLayer(s)
		if err != nil {
			return nil, err
		}
		l.initialSize = have[s.key()]
		h.layers = append(h.layers, l)
	}
	return h, nil
}

func (h *layerSet) parent() string { return filepath.Dir(h.storeDir) }

// prepare makes a store, or empties it if it is from an earlier boot: its files are not synced
// to disk, so that a crash of the system leaves anything in them. The file "boot" has the id
// of the boot. Nobody else holds the store.
func (h *layerSet) prepare() error {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	mark := filepath.Join(h.storeDir, "boot")
	if have, err := os.ReadFile(mark); err == nil && string(have) == string(boot) {
		h.discardCommandDirs(h.storeDir)
		return nil
	}
	h.discard(h.storeDir)
	return errors.Join(os.Mkdir(h.storeDir, 0o700), os.WriteFile(mark, boot, 0o600), os.Chtimes(mark, neverMeasured, neverMeasured))
}

// neverMeasured is the time of the file "boot" of a store that was not measured yet.
var neverMeasured = time.Unix(0, 0)

// fit sets the limits, measures the store if that was long ago, and makes room. It drops
// layers that have more than three quarters of their limit. The time of the file "boot" is
// when the store was measured.
func (h *layerSet) fit() error {
	mark := filepath.Join(h.storeDir, "boot")
	st, err := os.Stat(mark)
	if err != nil {
		return err
	}
	h.updateLimits()
	old := time.Since(st.ModTime()) > remeasureAfter
	h.updateSizes(func(s sizes) {
		if old {
			s.recount(h.storeDir)
			err = os.Chtimes(mark, time.Time{}, time.Now())
		}
		for key, size := range s {
			if size.exceeds(h.layerLimit.part(3, 4)) {
				h.discard(filepath.Join(h.storeDir, key))
				h.discard(filepath.Join(h.storeDir, key+".alone"))
				delete(s, key)
			}
		}
	})
	h.updateLimits()
	if room := h.totalLimit.part(3, 4); old || h.totalSize.exceeds(room) {
		h.sweep(room)
	}
	return err
}

// updateLimits sets the size of all layers, and the limits, which are lower if little disk is free.
func (h *layerSet) updateLimits() {
	h.totalSize = diskUse{}
	stores, _ := filepath.Glob(filepath.Join(h.parent(), "*", "sizes"))
	for _, name := range stores {
		h.totalSize = h.totalSize.plus(sizesOf(filepath.Dir(name)).sum())
	}
	room := freeSpace(h.parent()).plus(h.totalSize)
	h.layerLimit = layerQuota.atMost(room.part(1, 2))
	h.totalLimit = layerQuota.part(totalQuotaFactor, 1).atMost(room.part(3, 4))
}

// makeLayer makes the directories of a layer.
func (h *layerSet) makeLayer(s layer) (l commandLayer, err error) {
	l.layer, l.Path = s, s.path
	st, err := os.Stat(s.path)
	isNew := errors.Is(err, fs.ErrNotExist)
	if err != nil && !isNew {
		return l, err
	}
	mode := fs.FileMode(0o755)
	if !isNew {
		mode = st.Mode().Perm()
	}
	name := filepath.Base(s.path)
	l.Upper, l.Work = filepath.Join(h.dir, "upper-"+name), filepath.Join(h.dir, "work-"+name)
	// A layer that was written over a directory has only its changes, with marks for removed
	// files: it is not used without the directory. One that was written alone is whole.
	l.storedDir = filepath.Join(h.storeDir, s.key())
	alone := l.storedDir + ".alone"
	if isNew {
		l.storedDir = alone
	} else if _, err := os.Lstat(l.storedDir); err != nil && os.Rename(alone, l.storedDir) == nil {
		removeOpaqueMarks(l.storedDir)
	}
	l.Lower = []string{l.storedDir}
	if !isNew {
		l.Lower = append(l.Lower, s.path)
	}
	switch {
	case s.mustBeWritable && s.mayAdd:
		l.Alone = l.storedDir
	case s.mustBeWritable || isNew:
		l.Alone = l.Upper
	}
	// An overlay has the mode of its upper directory.
	return l, errors.Join(os.Mkdir(l.Work, 0o700), makeDir(l.Upper, mode), makeDir(l.storedDir, mode))
}

// removeOpaqueMarks lets the directories of a layer that was written alone show those that are below them
// by now, by removing their overlay marks.
func removeOpaqueMarks(layer string) {
	_ = filepath.WalkDir(layer, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = unix.Lremovexattr(name, "user.overlay.opaque")
		}
		return nil
	})
}

// makeDir makes a directory with a mode, unless it exists.
func makeDir(dir string, mode fs.FileMode) error {
	if st, err := os.Lstat(dir); err == nil && st.IsDir() {
		return nil
	}
	return errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, mode))
}

// end decides about what the command has written. With keep, what it may add to a layer is
// moved into the store. The rest is lost, but is removed by [layerSet.release] only, unless it was
// written directly.
func (h *layerSet) end(keep bool) {
	h.updateSizes(func(s sizes) {
		all := h.totalSize
		for _, l := range h.layers {
			key := l.key()
			switch {
			case l.direct && keep:
				s[key], _ = measure(l.storedDir)
			case l.direct:
				h.discard(l.storedDir)
				delete(s, key)
			case keep && l.mayAdd:
				own, err := measure(l.Upper)
				all = all.plus(own)
				if own == (diskUse{}) || err != nil || s[key].plus(own).exceeds(h.layerLimit) || all.exceeds(h.totalLimit) {
					continue
				}
				s[key] = s[key].plus(own)
				_ = errors.Join(makeDir(l.storedDir, 0o700), h.merge(l.Upper, l.storedDir)) // what cannot be moved is lost
			}
		}
	})
}

// updateSizes calls f with the sizes of the store, to change these and the layers. One process
// does so at a time.
func (h *layerSet) updateSizes(f func(sizes)) {
	lock := flock.New(filepath.Join(h.storeDir, "lock"))
	if lock.Lock() != nil {
		return
	}
	defer func() { _ = lock.Unlock() }()
	s := sizesOf(h.storeDir)
	had := maps.Clone(s)
	if f(s); !maps.Equal(s, had) {
		s.write(h.storeDir)
	}
}

// release removes the command's own directory, and lets go of the store.
func (h *layerSet) release() {
	h.discard(h.dir)
	_ = h.lock.Unlock()
}

// discard removes a directory in the background, and reports whether its name is free.
func (h *layerSet) discard(dir string) bool { return rootedfs.Discard(dir, h.parent()) == nil }

// discardCommandDirs removes the directories of commands that have ended from a store
// that nobody holds.
func (h *layerSet) discardCommandDirs(store string) {
	left, _ := filepath.Glob(filepath.Join(store, oncePrefix+"*"))
	for _, dir := range left {
		h.discard(dir)
	}
}

// merge moves the content of an overlay's upper directory into its lower one, which then has
// what the overlay showed. Nobody else changes either meanwhile.
func (h *layerSet) merge(upper, lower string) error {
	if err := os.Chmod(upper, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(upper)
	if err != nil {
		return err
	}
	for _, e := range entries {
		from, to := filepath.Join(upper, e.Name()), filepath.Join(lower, e.Name())
		info, err := e.Info()
		if err != nil {
			return err
		}
		have, err := os.Lstat(to)
		there := err == nil
		if there && e.IsDir() && have.IsDir() && !opaque(from) {
			if err := errors.Join(os.Chmod(to, 0o700), h.merge(from, to), os.Chmod(to, info.Mode().Perm())); err != nil {
				return err
			}
			continue
		}
		if there && (e.IsDir() || have.IsDir()) {
			h.discard(to)
		}
		if e.IsDir() { // a directory without write permission cannot be moved
			err = errors.Join(os.Chmod(from, 0o700), os.Rename(from, to), os.Chmod(to, info.Mode().Perm()))
		} else {
			err = os.Rename(from, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// opaque reports whether a directory of an overlay hides the one below it.
func opaque(dir string) bool {
	_, err := unix.Lgetxattr(dir, "user.overlay.opaque", make([]byte, 8))
	return err == nil
}

// sweep removes directories of commands whose processes are gone, stores that are unused for
// keepLayers, and then the stores that are unused longest, until all layers fit into room.
func (h *layerSet) sweep(room diskUse) {
	rootedfs.Sweep(h.parent())
	used := func(lock string) (at time.Time) {
		if st, err := os.Stat(filepath.Join(strings.TrimSuffix(lock, ".lock"), "boot")); err == nil {
			at = st.ModTime()
		}
		return at
	}
	locks, _ := filepath.Glob(filepath.Join(h.parent(), "*.lock"))
	slices.SortFunc(locks, func(a, b string) int { return used(a).Compare(used(b)) })
	for _, name := range locks {
		l := flock.New(name)
		if alone, err := l.TryLock(); err == nil && alone && isStillNamed(l) {
			store := strings.TrimSuffix(name, ".lock")
			size := sizesOf(store).sum()
			h.discardCommandDirs(store)
			if (time.Since(used(name)) > maxUnusedAge || h.totalSize.exceeds(room)) && h.discard(store) {
				_ = os.Remove(name)
				h.totalSize = h.totalSize.plus(size.part(-1, 1))
			}
		}
		_ = l.Unlock()
	}
}

// lockStore takes a shared lock of a store, until it is unlocked or the process ends. A process
// that is alone with the store prepares it first, which does not take long.
func lockStore(store string, prepare func() error) (*flock.Flock, error) {
	for {
		l := flock.New(store + ".lock")
		alone, err := l.TryLock()
		if err == nil && alone && isStillNamed(l) {
			err = prepare()
		}
		if err == nil {
			err = l.RLock()
		}
		if err == nil && isStillNamed(l) {
			return l, nil
		}
		_ = l.Unlock()
		if err != nil {
			return nil, err
		}
	}
}

// isStillNamed reports whether the locked file still has its name: sweep may have removed it after we
// opened it, and before we locked it.
func isStillNamed(l *flock.Flock) bool {
	ours, err := l.Stat()
	there, statErr := os.Stat(l.Path())
	return err == nil && statErr == nil && os.SameFile(ours, there)
}

// sizes has the size of each layer of a store, by [layer.key].
type sizes map[string]diskUse

func sizesOf(store string) sizes {
	out := sizes{}
	if text, err := os.ReadFile(filepath.Join(store, "sizes")); err != nil || json.Unmarshal(text, &out) != nil {
		return sizes{}
	}
	return out
}

// recount measures all layers of a store.
func (s sizes) recount(store string) {
	clear(s)
	dirs, _ := filepath.Glob(filepath.Join(store, "*", "*"))
	for _, dir := range dirs {
		rel, _ := filepath.Rel(store, strings.TrimSuffix(dir, ".alone"))
		if !strings.HasPrefix(rel, oncePrefix) {
			n, _ := measure(dir)
			s[rel] = s[rel].plus(n)
		}
	}
}

func (s sizes) sum() (all diskUse) {
	for _, size := range s {
		all = all.plus(size)
	}
	return all
}

// write replaces the file "sizes" in one step, since others read it at any time.
func (s sizes) write(store string) {
	text, err := json.Marshal(s)
	name := filepath.Join(store, "sizes")
	if err == nil && os.WriteFile(name+".new", text, 0o600) == nil {
		_ = os.Rename(name+".new", name)
	}
}
