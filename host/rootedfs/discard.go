package rootedfs

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// discardPrefix begins the names of trees that wait for their removal.
const discardPrefix = "stockade-gone-"

// Discard removes a directory tree in the background, see [RemoveAll]. Before it returns, it
// moves the tree into bin, a directory on the same file system; the error is that of the move.
// If this process ends before, [Sweep] of a later one removes it. If dir or bin is missing, it
// does nothing and returns nil.
func Discard(dir, bin string) error {
	away := filepath.Join(bin, discardPrefix+rand.Text())
	err := os.Rename(dir, away)
	if errors.Is(err, fs.ErrPermission) && os.Chmod(dir, 0o700) == nil { // a move writes the ".." of the directory
		err = os.Rename(dir, away)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		queueRemoval(away)
	}
	return err
}

// Sweep removes, in the background, trees in bin that other processes of this user have left.
func Sweep(bin string) {
	entries, _ := os.ReadDir(bin)
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), discardPrefix) {
			continue
		}
		if fi, err := e.Info(); err == nil && ownedByUser(fi) { // other users may make directories in bin, too
			queueRemoval(filepath.Join(bin, e.Name()))
		}
	}
}

// AwaitRemovals waits until all removals of this process are done, but not longer than limit.
func AwaitRemovals(limit time.Duration) {
	removals.mu.Lock()
	idle := removals.idle
	removals.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-time.After(limit):
	}
}

// removals is the queue of trees that this process removes, one at a time.
var removals struct {
	mu      sync.Mutex
	waiting []string      // paths of the trees; the first one is being removed
	idle    chan struct{} // closed when the queue is empty; nil before the first removal
}

// queueRemoval adds a tree to the queue, and starts to work on the queue if it was empty.
func queueRemoval(dir string) {
	r := &removals
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.waiting, dir) {
		return
	}
	if r.waiting = append(r.waiting, dir); len(r.waiting) > 1 {
		return
	}
	r.idle = make(chan struct{})
	go func() {
		for more := true; more; {
			removeDiscarded(dir)
			r.mu.Lock()
			r.waiting = r.waiting[1:]
			if more = len(r.waiting) > 0; more {
				dir = r.waiting[0]
			} else {
				close(r.idle)
			}
			r.mu.Unlock()
		}
	}()
}
