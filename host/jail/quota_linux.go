package jail

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/effect"
)

// amount is what files take of a disk.
type amount struct{ Bytes, Names int64 }

// layerQuota is what a layer may have, and never more than half of what is free. All
// layers together may have allLayers times as much.
var layerQuota = amount{4 << 30, 400_000}

const allLayers = 3

// othersTake is what others may take of the disk while a command runs.
var othersTake = amount{1 << 30, 100_000}

func (a amount) plus(b amount) amount { return amount{a.Bytes + b.Bytes, a.Names + b.Names} }

func (a amount) part(n, of int64) amount { return amount{a.Bytes * n / of, a.Names * n / of} }

// atMost is the less of each.
func (a amount) atMost(b amount) amount { return amount{min(a.Bytes, b.Bytes), min(a.Names, b.Names)} }

// over reports whether there is more of either.
func (a amount) over(most amount) bool { return a.Bytes > most.Bytes || a.Names > most.Names }

// freeIn is what is free where a directory is. Where a file system does not count names, it
// has room for any number.
func freeIn(dir string) amount {
	var sys unix.Statfs_t
	if unix.Statfs(dir, &sys) != nil {
		return amount{}
	}
	if sys.Files == 0 {
		sys.Ffree = 1 << 40
	}
	return amount{int64(sys.Bavail) * sys.Bsize, int64(sys.Ffree)}
}

// measure counts what there is in a directory. What cannot be counted is an error: it
// would be a place to hide in.
func measure(dir string) (n amount, err error) {
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && name != dir {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				st := info.Sys().(*syscall.Stat_t)
				n = n.plus(amount{st.Blocks * 512 / max(1, int64(st.Nlink)), 1})
			}
		}
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return nil
		}
		return err
	})
	return n, err
}

// stopped is the cause of the end of a command that a check has ended; its text is for
// whoever reads the result.
type stopped struct {
	why    string
	unsaid bool // nor does the result hold what the command has written
}

func (s *stopped) Error() string { return "the command was ended: " + s.why }

// noteStop reports whether it was a check that has ended a command, and says so in its
// result.
func noteStop(why error, ended *effect.Ended) bool {
	s, ok := errors.AsType[*stopped](why)
	if !ok {
		return false
	}
	ended.Notes = append(ended.Notes, s.Error())
	if s.unsaid {
		ended.Stdout, ended.Stderr = nil, nil
	}
	return true
}

// recount is how long layers are not counted of which nothing says that they grow.
const recount = 5 * time.Second

// check returns what says, each time that it is called, whether the command has written
// too much. It counts when there is noticeably less room on the disk, and now and then:
// others, or the command itself, may give back elsewhere what is taken here. Much less room
// than layers account for is in files that are open and have no name any more.
func (h *held) check() func() error {
	if h == nil { // it has no layers
		return func() error { return nil }
	}
	step := h.most.part(1, 16)
	first := freeIn(h.dir)
	before := first
	next := time.Now().Add(recount)
	return func() error {
		now := freeIn(h.dir)
		before = amount{max(before.Bytes, now.Bytes), max(before.Names, now.Names)}
		if !before.over(now.plus(step)) && time.Now().Before(next) {
			return nil
		}
		before = now
		begin := time.Now()
		grown, err := h.count()
		if err == nil && first.over(now.plus(grown).plus(h.most).plus(othersTake)) {
			err = &stopped{why: "it has written too much to files that are in no cache, or have no name any more; what it wrote to caches is gone"}
		}
		next = time.Now().Add(max(recount, 50*time.Since(begin)))
		return err
	}
}

// count fails if a layer has become too large, or all of them together. grown is by how
// much all have.
func (h *held) count() (grown amount, _ error) {
	all := h.all
	for _, l := range h.layers {
		dir, had := l.Upper, l.had
		if l.direct {
			dir, had = l.kept, amount{}
			all = all.plus(l.had.part(-1, 1))
		}
		own, err := measure(dir)
		all = all.plus(own)
		switch {
		case err != nil:
			return grown, &stopped{why: fmt.Sprintf("what it has written to the cache %s cannot be counted; all of that is gone", l.path)}
		case own.plus(had).over(h.most):
			return grown, &stopped{why: fmt.Sprintf("it has written too much to the cache %s, which may have %d MiB and %d names; what it wrote to caches is gone", l.path, h.most.Bytes>>20, h.most.Names)}
		case all.over(h.total):
			return grown, &stopped{why: fmt.Sprintf("it has written too much to caches, which may have %d MiB and %d names together; what it wrote there is gone", h.total.Bytes>>20, h.total.Names)}
		}
	}
	return all.plus(h.all.part(-1, 1)), nil
}
