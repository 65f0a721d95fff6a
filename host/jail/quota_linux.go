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

// amount is a use of the disk: bytes, and names in directories.
type amount struct{ Bytes, Names int64 }

// layerQuota is the limit of a layer, lower if that is more than half of what is free. The
// limit of all layers together is allLayers times as much.
var layerQuota = amount{4 << 30, 400_000}

const allLayers = 3

// othersTake is the part of the disk that others may take while a command runs.
var othersTake = amount{1 << 30, 100_000}

func (a amount) plus(b amount) amount { return amount{a.Bytes + b.Bytes, a.Names + b.Names} }

func (a amount) part(n, of int64) amount { return amount{a.Bytes * n / of, a.Names * n / of} }

// atMost returns the lower of both numbers, each.
func (a amount) atMost(b amount) amount { return amount{min(a.Bytes, b.Bytes), min(a.Names, b.Names)} }

// over reports whether one of the numbers is higher.
func (a amount) over(most amount) bool { return a.Bytes > most.Bytes || a.Names > most.Names }

// freeIn returns what is free on the file system of a directory. A file system that does not
// count inodes has room for any number of names.
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

// measure adds up the files in a directory. It fails if some cannot be counted: a command
// could hide files there.
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

// stopped is the error of a check that has ended a command. Its text is for
// readers of the result.
type stopped struct {
	why    string
	unsaid bool // the result does not have the output of the command either
}

func (s *stopped) Error() string { return "the command was ended: " + s.why }

// noteStop reports whether a check has ended a command, and notes the reason in the result.
func noteStop(why error, ended *effect.Ended) bool {
	s, ok := errors.AsType[*stopped](why)
	if !ok {
		return false
	}
	ended.Notes = append(ended.Notes, s.Error())
	if s.unsaid {
		ended.Stdout, ended.Stderr, ended.Wrote = nil, nil, nil
	}
	return true
}

// recount is the least time between two measurements of layers while free disk space does
// not shrink.
const recount = 5 * time.Second

// check returns a function that measures the layers and fails if the command has written too
// much. It measures when free disk space shrinks noticeably, and at intervals, since space may
// be freed elsewhere at the same time. If far more space is gone than the layers grew by,
// files outside of them take it, or open files without a name.
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

// count fails if a layer, or all layers together, have become too large. grown is by how much
// all layers have grown since the command began.
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
