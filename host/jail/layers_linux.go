package jail

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	store  string // empty: nothing is kept, neither for this command nor of it
	as     os.FileInfo
	layers []heldLayer
	most   amount // that a layer may have
	total  amount // that all layers of all workspaces may have
	all    amount // that these had when the command began
	locks  []*flock.Flock
	dir    string // of the command's own
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
	parent := filepath.Dir(store)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	if parent, err = filepath.EvalSymlinks(parent); err != nil { // the helper follows no link
		return nil, err
	}
	h := &held{store: filepath.Join(parent, filepath.Base(store)), dir: filepath.Join(parent, once+rand.Text())}
	defer func() {
		if err != nil {
			h.release()
		}
	}()
	own, err := tryLock(h.dir, false)
	if err != nil {
		return nil, err
	}
	if own == nil {
		return nil, fmt.Errorf("%s is in use", h.dir)
	}
	h.locks = append(h.locks, own)
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		return nil, err
	}
	if err := h.open(parent); err != nil {
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

// open holds the store, which others may hold too, and finds the limits. Whoever is
// alone with it makes it fit for use before.
func (h *held) open(parent string) error {
	l, err := tryLock(h.store, false)
	alone := l != nil
	if err == nil && !alone {
		l, err = tryLock(h.store, true)
	}
	if err != nil {
		return err
	}
	h.measure(parent)
	if l == nil { // somebody is just making it fit
		h.store = ""
		return nil
	}
	h.locks = append(h.locks, l)
	if alone {
		if err := h.refresh(parent); err != nil {
			return err
		}
		if ok, err := l.TryRLock(); err != nil || !ok { // which makes one for many of ours
			return fmt.Errorf("%s cannot be shared: %w", h.store, err)
		}
	}
	h.as, err = os.Stat(h.store)
	return err
}

// measure finds what all layers have, and what one may have: more where more is free.
func (h *held) measure(parent string) {
	h.all = amount{}
	stores, _ := filepath.Glob(filepath.Join(parent, "*", "sizes"))
	for _, name := range stores {
		h.all = h.all.plus(sizesOf(filepath.Dir(name)).sum())
	}
	free, ok := freeIn(parent)
	room := free.plus(h.all)
	if !ok {
		room.Names = 2 * layerQuota.Names * allLayers
	}
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
	err = errors.Join(os.Mkdir(l.Work, 0o700), makeDir(l.Upper, mode)) // the layer has the mode of its upper directory
	if h.store != "" && err == nil {
		// What was written over something that is gone by now is a part of it, with marks
		// of what was removed. The other way round it is whole.
		l.kept = filepath.Join(h.store, s.key())
		alone := l.kept + ".alone"
		if isNew {
			l.kept = alone
		} else if _, err := os.Lstat(l.kept); err != nil && os.Rename(alone, l.kept) == nil {
			unveil(l.kept)
		}
		err = makeDir(l.kept, mode)
		l.Lower = append(l.Lower, l.kept)
	}
	switch {
	case !isNew:
		l.Lower = append(l.Lower, s.path)
	case l.Lower == nil: // a bind would tell where Upper is, in /proc/self/mountinfo
		nothing := filepath.Join(h.dir, "nothing")
		l.Lower, err = []string{nothing}, errors.Join(err, makeDir(nothing, mode))
	}
	switch {
	case s.alone && s.adds && l.kept != "":
		l.Alone = l.kept
	case s.alone || isNew:
		l.Alone = l.Upper
	}
	return l, err
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
	if h.store == "" {
		return
	}
	lock := flock.New(filepath.Join(h.store, "lock"))
	if lock.Lock() != nil {
		return
	}
	defer func() { _ = lock.Unlock() }()
	if now, err := os.Stat(h.store); err != nil || !os.SameFile(now, h.as) {
		return
	}
	sizes, changed, all := sizesOf(h.store), false, h.all
	for _, l := range h.layers {
		key := l.key()
		if l.adds && sizes[key].over(h.most.part(3, 4)) { // it begins again
			h.discard(l.kept)
			delete(sizes, key)
			changed = true
		}
		switch {
		case l.direct && !keep:
			h.discard(l.kept)
			delete(sizes, key)
		case l.direct:
			sizes[key], _ = measure(l.kept)
		case !keep || !l.adds:
			continue
		default:
			own, err := measure(l.Upper)
			all = all.plus(own)
			if own == (amount{}) || err != nil || sizes[key].plus(own).over(h.most) || all.over(h.total) {
				continue
			}
			sizes[key] = sizes[key].plus(own)
			_ = errors.Join(makeDir(l.kept, modeOf(l.Upper)), h.merge(l.Upper, l.kept)) // of what could not be moved, nothing is kept
		}
		changed = true
	}
	if changed {
		sizes.write(h.store)
	}
}

// release removes what the command had for itself, and lets go of the store.
func (h *held) release() {
	if h.discard(h.dir) {
		_ = os.Remove(h.dir + ".lock")
	}
	for _, l := range h.locks {
		_ = l.Unlock()
	}
}

// discard removes a directory in the background, and reports whether its name is free.
func (h *held) discard(dir string) bool { return beneath.Discard(dir, filepath.Dir(h.dir)) == nil }

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

// modeOf is the mode of a directory; of none, for its owner alone.
func modeOf(dir string) fs.FileMode {
	st, err := os.Stat(dir)
	if err != nil {
		return 0o700
	}
	return st.Mode().Perm()
}

// opaque reports whether a directory of an overlay hides those below it.
func opaque(dir string) bool {
	_, err := unix.Lgetxattr(dir, "user.overlay.opaque", make([]byte, 8))
	return err == nil
}

// refresh makes a store, or empties it: after a crash of the system nobody knows what
// is in it, because nothing waits for the disk. Its file "boot" says which boot it is
// of, and its time is when that was looked at. What has little room left begins again.
// Nobody else holds the store.
func (h *held) refresh(parent string) error {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	mark := filepath.Join(h.store, "boot")
	have, err := os.ReadFile(mark)
	if err != nil || string(have) != string(boot) {
		h.discard(h.store)
		if err := os.Mkdir(h.store, 0o700); err != nil {
			return err
		}
	}
	sizes := sizesOf(h.store)
	st, err := os.Stat(mark)
	old := err != nil || string(have) != string(boot) || time.Since(st.ModTime()) > measureLayers
	if old {
		clear(sizes)
		dirs, _ := filepath.Glob(filepath.Join(h.store, "*", "*"))
		for _, dir := range dirs {
			rel, _ := filepath.Rel(h.store, strings.TrimSuffix(dir, ".alone"))
			n, _ := measure(dir)
			sizes[rel] = sizes[rel].plus(n)
		}
	}
	for key, size := range sizes {
		if size.over(h.most.part(3, 4)) {
			h.discard(filepath.Join(h.store, key))
			h.discard(filepath.Join(h.store, key+".alone"))
			delete(sizes, key)
			old = true
		}
	}
	if old {
		sizes.write(h.store)
		if err := os.WriteFile(mark, boot, 0o600); err != nil {
			return err
		}
		h.measure(parent)
	}
	left, _ := filepath.Glob(filepath.Join(parent, once+"*.lock"))
	if room := h.total.part(3, 4); old || len(left) > 1 || h.all.over(room) {
		sweepLayers(parent, room)
		h.measure(parent)
	}
	return nil
}

// sweepLayers removes what nobody has used for long, what was for one command of a
// process that is gone, and of the rest what was used longest ago, until there is room.
func sweepLayers(parent string, room amount) {
	type store struct {
		name string
		used time.Time
		size amount
	}
	var stores []store
	var all amount
	locks, _ := filepath.Glob(filepath.Join(parent, "*.lock"))
	for _, name := range locks {
		s := store{name: strings.TrimSuffix(name, ".lock")}
		s.size = sizesOf(s.name).sum()
		all = all.plus(s.size)
		if st, err := os.Stat(filepath.Join(s.name, "boot")); err == nil && !strings.HasPrefix(filepath.Base(s.name), once) {
			s.used = st.ModTime()
		}
		stores = append(stores, s)
	}
	beneath.Sweep(parent)
	slices.SortFunc(stores, func(a, b store) int { return a.used.Compare(b.used) })
	for _, s := range stores {
		if time.Since(s.used) < keepLayers && !all.over(room) {
			return
		}
		l, err := tryLock(s.name, false)
		if err != nil || l == nil {
			continue
		}
		if beneath.Discard(s.name, parent) == nil {
			_ = os.Remove(l.Path())
		}
		_ = l.Unlock()
		all = all.plus(s.size.part(-1, 1))
	}
}

// tryLock holds the lock of a store, alone or with others; nil if that cannot be. The
// lock goes with the process.
func tryLock(store string, shared bool) (*flock.Flock, error) {
	for {
		l := flock.New(store + ".lock")
		try := l.TryLock
		if shared {
			try = l.TryRLock
		}
		ok, err := try()
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

// sizes are what the layers of a store have, by [layer.key].
type sizes map[string]amount

func sizesOf(store string) sizes {
	out := sizes{}
	if text, err := os.ReadFile(filepath.Join(store, "sizes")); err != nil || json.Unmarshal(text, &out) != nil {
		return sizes{}
	}
	return out
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
