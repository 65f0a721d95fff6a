package jail

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/services"
)

// diskUse is an amount of disk space: bytes, and names of files.
type diskUse struct{ Bytes, Names int64 }

// layerQuota limits one layer. If half of the free space is less, that is the limit. All
// layers together may have totalQuotaFactor times layerQuota, and at most three quarters of
// the free space. The space of the layers counts as free here.
var layerQuota = diskUse{4 << 30, 400_000}

const totalQuotaFactor = 3

// othersShare is the disk space that other programs may take while a command runs, before the
// command is blamed for it.
var othersShare = diskUse{1 << 30, 100_000}

func (a diskUse) plus(b diskUse) diskUse { return diskUse{a.Bytes + b.Bytes, a.Names + b.Names} }

func (a diskUse) part(n, of int64) diskUse { return diskUse{a.Bytes * n / of, a.Names * n / of} }

// atMost returns the lower number of bytes and the lower number of names.
func (a diskUse) atMost(b diskUse) diskUse {
	return diskUse{min(a.Bytes, b.Bytes), min(a.Names, b.Names)}
}

func (a diskUse) exceeds(limit diskUse) bool { return a.Bytes > limit.Bytes || a.Names > limit.Names }

// freeSpace returns the free space on the file system of a directory. A file system that does
// not count inodes has room for any number of names. After an error it returns 0.
func freeSpace(dir string) diskUse {
	var sys unix.Statfs_t
	if unix.Statfs(dir, &sys) != nil {
		return diskUse{}
	}
	if sys.Files == 0 {
		sys.Ffree = 1 << 40
	}
	return diskUse{int64(sys.Bavail) * sys.Bsize, int64(sys.Ffree)}
}

// measure returns the size of all files below a directory. It is an error if a file cannot be
// counted, because a command could hide files there. A file that is gone counts as nothing.
func measure(dir string) (n diskUse, err error) {
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && name != dir {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				st := info.Sys().(*syscall.Stat_t)
				n = n.plus(diskUse{st.Blocks * 512 / max(1, int64(st.Nlink)), 1})
			}
		}
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return nil
		}
		return err
	})
	return n, err
}

// stopError is the error of a check that has ended a command. Its text is for the result.
type stopError struct {
	why        string
	hideOutput bool // the result must not show the output of the command, which may hold a secret
}

func (s *stopError) Error() string { return "the command was ended: " + s.why }

// noteStop reports whether why is a stopError, the error of a check that has ended a command.
// If so it adds the reason to the result, and removes the output if hideOutput is set.
func noteStop(why error, ended *services.CommandResult) bool {
	s, ok := errors.AsType[*stopError](why)
	if !ok {
		return false
	}
	ended.Notes = append(ended.Notes, s.Error())
	if s.hideOutput {
		ended.Stdout, ended.Stderr, ended.RawOutput = nil, nil, nil
	}
	return true
}

// measureInterval is the least time between measurements while the free disk space does not
// shrink.
const measureInterval = 5 * time.Second

// sizeCheck returns a check of a command, which returns a stopError if the command has written
// too much. The check measures the layers when the free disk space shrinks noticeably, and at
// intervals, because other programs may free space at the same time. If far more space is gone
// than the layers have grown, it was taken by files outside of them, or by open files without
// a name.
func (h *layerSet) sizeCheck() func() error {
	if h == nil { // no layers
		return func() error { return nil }
	}
	step := h.layerLimit.part(1, 16)
	first := freeSpace(h.dir)
	before := first
	next := time.Now().Add(measureInterval)
	return func() error {
		now := freeSpace(h.dir)
		before = diskUse{max(before.Bytes, now.Bytes), max(before.Names, now.Names)}
		if !before.exceeds(now.plus(step)) && time.Now().Before(next) {
			return nil
		}
		before = now
		begin := time.Now()
		grown, err := h.checkGrowth()
		if err == nil && first.exceeds(now.plus(grown).plus(h.layerLimit).plus(othersShare)) {
			err = &stopError{why: "it has written too much to files outside of caches, or to removed files that are still open; what it wrote to caches is gone"}
		}
		next = time.Now().Add(max(measureInterval, 50*time.Since(begin)))
		return err
	}
}

// checkGrowth returns a stopError if a layer, or all layers together, have become too large,
// or if a layer cannot be measured. grown is the growth of all layers since the command began.
func (h *layerSet) checkGrowth() (grown diskUse, _ error) {
	all := h.totalSize
	for _, l := range h.layers {
		dir, had := l.Upper, l.initialSize
		if l.direct {
			dir, had = l.storedDir, diskUse{}
			all = all.plus(l.initialSize.part(-1, 1))
		}
		own, err := measure(dir)
		all = all.plus(own)
		switch {
		case err != nil:
			return grown, &stopError{why: fmt.Sprintf("what it has written to the cache %s cannot be counted; all of that is gone", l.path)}
		case own.plus(had).exceeds(h.layerLimit):
			return grown, &stopError{why: fmt.Sprintf("it has written too much to the cache %s, which may have %d MiB and %d names; what it wrote to caches is gone", l.path, h.layerLimit.Bytes>>20, h.layerLimit.Names)}
		case all.exceeds(h.totalLimit):
			return grown, &stopError{why: fmt.Sprintf("it has written too much to caches, which may have %d MiB and %d names together; what it wrote there is gone", h.totalLimit.Bytes>>20, h.totalLimit.Names)}
		}
	}
	return all.plus(h.totalSize.part(-1, 1)), nil
}
