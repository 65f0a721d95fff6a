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
	maxUnusedAge   = 30 * 24 * time.Hour // time since its last use after which the store of a workspace is removed
	remeasureAfter = time.Hour           // age after which the recorded sizes of a store are measured again
	oncePrefix     = "once-"             // begins the names of directories in a store that belong to one command
)

// layerStore returns the directory in parent for the layers of a workspace. layered is part of
// its name: a layer that was written as an overlay is useless without one.
func layerStore(parent, home, workspace string, layered bool) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%v\x00kept", home, workspace, layered)) // "kept": older stores have another format
	return filepath.Join(parent, hex.EncodeToString(sum[:16]))
}

// layerSet holds the layers of one command. The store has the files of earlier commands;
// nobody removes it while its lock is held. The command's own directory has the files that
// this command writes. They are moved into the store once it is decided that they may be kept.
type layerSet struct {
	storeDir   string
	lock       *flock.Flock // shared lock of the store
	dir        string       // directory of this command, in the store
	layers     []commandLayer
	layerLimit diskUse // limit of one layer
	totalLimit diskUse // limit of the layers of all workspaces together
	totalSize  diskUse // size of the layers of all workspaces when the command began
}

type commandLayer struct {
	layer
	wire.Layer
	storedDir   string  // directory of earlier commands' files in the store
	initialSize diskUse // recorded size of storedDir when the command began
	// direct: no overlay could be mounted, and the command writes to storedDir itself.
	direct bool
}

// newLayerSet locks the store, and makes the directories for the layers of a command. The
// caller has to release the set.
func newLayerSet(store string, layers []layer) (_ *layerSet, err error) {
	if err := os.MkdirAll(filepath.Dir(store), 0o700); err != nil {
		return nil, err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(store)) // the helper follows no links
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

// prepare makes the store, or empties it if it is from an earlier boot: its files are not
// synced to disk, so a crash of the system may have damaged them. From a store of this boot it
// removes the directories of ended commands. The file "boot" holds the boot's id. The caller
// holds the only lock of the store.
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

// neverMeasured is the time of the file "boot" in a store that was not measured yet.
var neverMeasured = time.Unix(0, 0)

// fit sets the limits, and measures the store if its sizes are old. It drops layers that
// exceed three quarters of their limit; if all layers together do, it removes unused stores.
// The time of the file "boot" is the time of the last measurement.
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

// updateLimits sets totalSize, layerLimit and totalLimit. If the disk has too little free
// space for them, the limits are lower, see layerQuota.
func (h *layerSet) updateLimits() {
	h.totalSize = diskUse{}
	stores, _ := rootedfs.Glob(h.parent(), "*/sizes")
	for _, name := range stores {
		h.totalSize = h.totalSize.plus(sizesOf(filepath.Dir(name)).sum())
	}
	room := freeSpace(h.parent()).plus(h.totalSize)
	h.layerLimit = layerQuota.atMost(room.part(1, 2))
	h.totalLimit = layerQuota.part(totalQuotaFactor, 1).atMost(room.part(3, 4))
}

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
	// A layer that was written over a directory holds only changes, with marks for removed
	// files, so it is useless without the directory. A layer that was written alone is
	// complete.
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

// removeOpaqueMarks removes the overlay's marks from a layer that was written while the user
// did not have the directory below it. By now the user has it, and without the marks its files
// are visible through the layer.
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

// end decides about the files that the command has written. With keep, the files of layers
// with mayAdd are moved into the store, unless that would exceed a limit. The others are lost;
// [layerSet.release] removes them. A direct layer is in the store: it stays as it is with
// keep, and otherwise all of it is discarded, with the files of earlier commands.
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
				if own == (diskUse{}) || err != nil || s[key].plus(own).exceeds(h.layerLimit) || all.plus(own).exceeds(h.totalLimit) {
					continue
				}
				all, s[key] = all.plus(own), s[key].plus(own)
				_ = errors.Join(makeDir(l.storedDir, 0o700), h.merge(l.Upper, l.storedDir)) // files that cannot be moved are lost
			}
		}
	})
}

// updateSizes calls f with the sizes of the store's layers, and stores the sizes that f
// leaves. f may remove layers. Only one caller at a time does so; without the lock for that,
// f is not called.
func (h *layerSet) updateSizes(f func(sizes)) {
	lock := flock.New(filepath.Join(h.storeDir, "lock"))
	if lock.Lock() != nil {
		return
	}
	defer func() { _ = lock.Unlock() }()
	s := sizesOf(h.storeDir)
	before := maps.Clone(s)
	if f(s); !maps.Equal(s, before) {
		s.write(h.storeDir)
	}
}

// release removes the command's own directory, and unlocks the store.
func (h *layerSet) release() {
	h.discard(h.dir)
	_ = h.lock.Unlock()
}

// discard removes a directory in the background, and reports whether its name is free.
func (h *layerSet) discard(dir string) bool { return rootedfs.Discard(dir, h.parent()) == nil }

// discardCommandDirs removes the directories of ended commands from a store. The caller holds
// the only lock of the store.
func (h *layerSet) discardCommandDirs(store string) {
	left, _ := rootedfs.Glob(store, oncePrefix+"*")
	for _, dir := range left {
		h.discard(dir)
	}
}

// merge moves the content of an overlay's upper directory into lower, the directory below it,
// with the marks for removed files: lower then does what both did. Nobody else changes the
// directories meanwhile.
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
		exists := err == nil
		if exists && e.IsDir() && have.IsDir() && !opaque(from) {
			if err := errors.Join(os.Chmod(to, 0o700), h.merge(from, to), os.Chmod(to, info.Mode().Perm())); err != nil {
				return err
			}
			continue
		}
		if exists && (e.IsDir() || have.IsDir()) {
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

// opaque reports whether a directory of an overlay hides its lower directory.
func opaque(dir string) bool {
	_, err := unix.Lgetxattr(dir, "user.overlay.opaque", make([]byte, 8))
	return err == nil
}

// sweep removes directories of ended commands, and stores that were unused for maxUnusedAge.
// While all layers together are larger than room, it also removes the stores that were unused
// longest. It skips stores that are locked.
func (h *layerSet) sweep(room diskUse) {
	rootedfs.Sweep(h.parent())
	used := func(lock string) (at time.Time) {
		if st, err := os.Stat(filepath.Join(strings.TrimSuffix(lock, ".lock"), "boot")); err == nil {
			at = st.ModTime()
		}
		return at
	}
	locks, _ := rootedfs.Glob(h.parent(), "*.lock")
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

// lockStore takes a shared lock of a store, which lasts until it is unlocked or the process
// ends. If nobody else holds the store, it calls prepare first, which does not take long.
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

// isStillNamed reports whether the locked file is still the file with its name: sweep may have
// removed it after we opened it and before we locked it.
func isStillNamed(l *flock.Flock) bool {
	locked, err := l.Stat()
	named, statErr := os.Stat(l.Path())
	return err == nil && statErr == nil && os.SameFile(locked, named)
}

// sizes holds the disk use of each layer of a store, by [layer.key].
type sizes map[string]diskUse

func sizesOf(store string) sizes {
	out := sizes{}
	if text, err := os.ReadFile(filepath.Join(store, "sizes")); err != nil || json.Unmarshal(text, &out) != nil {
		return sizes{}
	}
	return out
}

func (s sizes) recount(store string) {
	clear(s)
	dirs, _ := rootedfs.Glob(store, "*/*")
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

// write replaces the file "sizes" of a store in one step, because others read it at any time.
func (s sizes) write(store string) {
	text, err := json.Marshal(s)
	name := filepath.Join(store, "sizes")
	if err == nil && os.WriteFile(name+".new", text, 0o600) == nil {
		_ = os.Rename(name+".new", name)
	}
}
