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

	"github.com/stockade-dev/stockade/host/beneath"
	"github.com/stockade-dev/stockade/host/jail/wire"
)

const (
	// keepLayers is how long the layers of a workspace are kept that nobody uses.
	keepLayers = 30 * 24 * time.Hour
	// measureLayers is how long sizes are believed that were added up.
	measureLayers = time.Hour
	// once is the beginning of the names of what one command has for itself.
	once = "once-"
)

// layerStore is the name of the directory where the layers of a workspace are kept.
// What was written over something is of no use alone.
func layerStore(parent, home, workspace string, layered bool) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%v\x00kept", home, workspace, layered)) // others were made before, otherwise
	return filepath.Join(parent, hex.EncodeToString(sum[:16]))
}

// held are the layers of one command: what others have written, in a store that stays
// as long as it is held, and directories for what the command itself writes. That is
// moved into the store when it is known that it may be kept.
type held struct {
	store  string
	lock   *flock.Flock // of the store, shared with others
	dir    string       // of the command's own, in the store
	layers []heldLayer
	most   amount // that a layer may have
	total  amount // that all layers of all workspaces may have
	all    amount // that these had when the command began
}

type heldLayer struct {
	layer
	wire.Layer
	kept string // the directory in the store
	had  amount
	// direct says that nothing could lie over kept: the command writes there.
	direct bool
}

// holdLayers gives the layers of a command their directories.
func holdLayers(store string, layers []layer) (_ *held, err error) {
	if err := os.MkdirAll(filepath.Dir(store), 0o700); err != nil {
		return nil, err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(store)) // the helper follows no link
	if err != nil {
		return nil, err
	}
	h := &held{store: filepath.Join(parent, filepath.Base(store))}
	h.dir = filepath.Join(h.store, once+rand.Text())
	if h.lock, err = hold(h.store, h.prepare); err != nil {
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
	have := sizesOf(h.store)
	for _, s := range layers {
		l, err := h.makeLayer(s)
		if err != nil {
			return nil, err
		}
		l.had = have[s.key()]
		h.layers = append(h.layers, l)
	}
	return h, nil
}

func (h *held) parent() string { return filepath.Dir(h.store) }

// prepare makes a store, or empties it: after a crash of the system nobody knows what is
// in it, because nothing waits for the disk. Its file "boot" says which boot it is of.
// Nobody else holds the store.
func (h *held) prepare() error {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	mark := filepath.Join(h.store, "boot")
	if have, err := os.ReadFile(mark); err == nil && string(have) == string(boot) {
		h.discardOnce(h.store)
		return nil
	}
	h.discard(h.store)
	return errors.Join(os.Mkdir(h.store, 0o700), os.WriteFile(mark, boot, 0o600), os.Chtimes(mark, never, never))
}

// never is the time of a store that nobody has counted yet.
var never = time.Unix(0, 0)

// fit finds the limits, counts what is in the store if nobody has done so for long, and
// makes room. What has little room left begins again. The time of the file "boot" is when
// the store was counted.
func (h *held) fit() error {
	mark := filepath.Join(h.store, "boot")
	st, err := os.Stat(mark)
	if err != nil {
		return err
	}
	h.measure()
	old := time.Since(st.ModTime()) > measureLayers
	h.change(func(s sizes) {
		if old {
			s.recount(h.store)
			err = os.Chtimes(mark, time.Time{}, time.Now())
		}
		for key, size := range s {
			if size.over(h.most.part(3, 4)) {
				h.discard(filepath.Join(h.store, key))
				h.discard(filepath.Join(h.store, key+".alone"))
				delete(s, key)
			}
		}
	})
	h.measure()
	if room := h.total.part(3, 4); old || h.all.over(room) {
		h.sweep(room)
	}
	return err
}

// measure finds what all layers have, and what one may have: more where more is free.
func (h *held) measure() {
	h.all = amount{}
	stores, _ := filepath.Glob(filepath.Join(h.parent(), "*", "sizes"))
	for _, name := range stores {
		h.all = h.all.plus(sizesOf(filepath.Dir(name)).sum())
	}
	room := freeIn(h.parent()).plus(h.all)
	h.most = layerQuota.atMost(room.part(1, 2))
	h.total = layerQuota.part(allLayers, 1).atMost(room.part(3, 4))
}

// makeLayer makes the directories of a layer.
func (h *held) makeLayer(s layer) (l heldLayer, err error) {
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
	// What was written over something that is gone by now is a part of it, with marks
	// of what was removed. The other way round it is whole.
	l.kept = filepath.Join(h.store, s.key())
	alone := l.kept + ".alone"
	if isNew {
		l.kept = alone
	} else if _, err := os.Lstat(l.kept); err != nil && os.Rename(alone, l.kept) == nil {
		unveil(l.kept)
	}
	l.Lower = []string{l.kept}
	if !isNew {
		l.Lower = append(l.Lower, s.path)
	}
	switch {
	case s.alone && s.adds:
		l.Alone = l.kept
	case s.alone || isNew:
		l.Alone = l.Upper
	}
	// The layer has the mode of its upper directory.
	return l, errors.Join(os.Mkdir(l.Work, 0o700), makeDir(l.Upper, mode), makeDir(l.kept, mode))
}

// unveil has the directories of a layer that was written over nothing not hide what is
// at their places by now.
func unveil(layer string) {
	_ = filepath.WalkDir(layer, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = unix.Lremovexattr(name, "user.overlay.opaque")
		}
		return nil
	})
}

// makeDir makes a directory with a mode, if there is none.
func makeDir(dir string, mode fs.FileMode) error {
	if st, err := os.Lstat(dir); err == nil && st.IsDir() {
		return nil
	}
	return errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, mode))
}

// end decides about what the command has written: what it may add is kept for those with
// whom it shares a layer, or all is gone. It does not remove what is not kept.
func (h *held) end(keep bool) {
	h.change(func(s sizes) {
		all := h.all
		for _, l := range h.layers {
			key := l.key()
			switch {
			case l.direct && keep:
				s[key], _ = measure(l.kept)
			case l.direct:
				h.discard(l.kept)
				delete(s, key)
			case keep && l.adds:
				own, err := measure(l.Upper)
				all = all.plus(own)
				if own == (amount{}) || err != nil || s[key].plus(own).over(h.most) || all.over(h.total) {
					continue
				}
				s[key] = s[key].plus(own)
				_ = errors.Join(makeDir(l.kept, 0o700), h.merge(l.Upper, l.kept)) // of what could not be moved, nothing is kept
			}
		}
	})
}

// change changes what is in the store, and what is noted of that. One process does so at
// a time.
func (h *held) change(f func(sizes)) {
	lock := flock.New(filepath.Join(h.store, "lock"))
	if lock.Lock() != nil {
		return
	}
	defer func() { _ = lock.Unlock() }()
	s := sizesOf(h.store)
	had := maps.Clone(s)
	if f(s); !maps.Equal(s, had) {
		s.write(h.store)
	}
}

// release removes what the command had for itself, and lets go of the store.
func (h *held) release() {
	h.discard(h.dir)
	_ = h.lock.Unlock()
}

// discard removes a directory in the background, and reports whether its name is free.
func (h *held) discard(dir string) bool { return beneath.Discard(dir, h.parent()) == nil }

// discardOnce removes what commands have left that had a store. Nobody holds it.
func (h *held) discardOnce(store string) {
	left, _ := filepath.Glob(filepath.Join(store, once+"*"))
	for _, dir := range left {
		h.discard(dir)
	}
}

// merge moves what an upper directory holds into one that was below it, so that this
// becomes what both were together. Nobody else changes either meanwhile.
func (h *held) merge(upper, lower string) error {
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
		if e.IsDir() { // one that may not be written cannot be moved either
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

// opaque reports whether a directory of an overlay hides those below it.
func opaque(dir string) bool {
	_, err := unix.Lgetxattr(dir, "user.overlay.opaque", make([]byte, 8))
	return err == nil
}

// sweep removes what commands of processes that are gone have left, what nobody has used
// for long, and of the rest what was used longest ago, until there is room.
func (h *held) sweep(room amount) {
	beneath.Sweep(h.parent())
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
		if alone, err := l.TryLock(); err == nil && alone && isAt(l) {
			store := strings.TrimSuffix(name, ".lock")
			size := sizesOf(store).sum()
			h.discardOnce(store)
			if (time.Since(used(name)) > keepLayers || h.all.over(room)) && h.discard(store) {
				_ = os.Remove(name)
				h.all = h.all.plus(size.part(-1, 1))
			}
		}
		_ = l.Unlock()
	}
}

// hold holds the lock of a store with others, until it is unlocked or the process ends.
// Whoever is alone with the store prepares it before. Nobody is for long.
func hold(store string, prepare func() error) (*flock.Flock, error) {
	for {
		l := flock.New(store + ".lock")
		alone, err := l.TryLock()
		if err == nil && alone && isAt(l) {
			err = prepare()
		}
		if err == nil {
			err = l.RLock()
		}
		if err == nil && isAt(l) {
			return l, nil
		}
		_ = l.Unlock()
		if err != nil {
			return nil, err
		}
	}
}

// isAt reports whether the file that is locked has its name: whoever sweeps may have
// removed it between our opening and our locking it.
func isAt(l *flock.Flock) bool {
	ours, err := l.Stat()
	there, statErr := os.Stat(l.Path())
	return err == nil && statErr == nil && os.SameFile(ours, there)
}

// sizes are what the layers of a store have, by [layer.key].
type sizes map[string]amount

func sizesOf(store string) sizes {
	out := sizes{}
	if text, err := os.ReadFile(filepath.Join(store, "sizes")); err != nil || json.Unmarshal(text, &out) != nil {
		return sizes{}
	}
	return out
}

// recount counts what there is.
func (s sizes) recount(store string) {
	clear(s)
	dirs, _ := filepath.Glob(filepath.Join(store, "*", "*"))
	for _, dir := range dirs {
		rel, _ := filepath.Rel(store, strings.TrimSuffix(dir, ".alone"))
		if !strings.HasPrefix(rel, once) {
			n, _ := measure(dir)
			s[rel] = s[rel].plus(n)
		}
	}
}

func (s sizes) sum() (all amount) {
	for _, size := range s {
		all = all.plus(size)
	}
	return all
}

// write replaces the file as a whole: others read it at any time.
func (s sizes) write(store string) {
	text, err := json.Marshal(s)
	name := filepath.Join(store, "sizes")
	if err == nil && os.WriteFile(name+".new", text, 0o600) == nil {
		_ = os.Rename(name+".new", name)
	}
}
