package beneath

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

// goneMark begins the names of trees that wait for their removal.
const goneMark = "stockade-gone-"

// Discard removes a tree in the background, see [RemoveAll]. Before it returns, the
// tree has a name of its own in bin, a directory on the same file system, where
// [Sweep] of a later process finds what this one does not get to. No tree is no error.
func Discard(dir, bin string) error {
	away := filepath.Join(bin, goneMark+rand.Text())
	err := os.Rename(dir, away)
	if errors.Is(err, fs.ErrPermission) && os.Chmod(dir, 0o700) == nil { // its ".." becomes another
		err = os.Rename(dir, away)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		removals.begin(away)
	}
	return err
}

// Sweep removes in the background what other processes of this user have discarded into
// bin, and have not removed.
func Sweep(bin string) {
	entries, _ := os.ReadDir(bin)
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), goneMark) {
			continue
		}
		if fi, err := e.Info(); err == nil && ours(fi) { // bin may be one in which others make directories, too
			removals.begin(filepath.Join(bin, e.Name()))
		}
	}
}

// AwaitRemovals waits for the removals that this process has begun, and no longer than
// the limit.
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

// removals are those of this process, one at a time.
var removals removing

type removing struct {
	mu      sync.Mutex
	waiting []string
	idle    chan struct{} // closed when nothing waits any more; nil: nothing does
}

func (r *removing) begin(dir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.waiting, dir) {
		return
	}
	r.waiting = append(r.waiting, dir)
	if r.idle == nil {
		r.idle = make(chan struct{})
		go r.work()
	}
}

func (r *removing) work() {
	for {
		r.mu.Lock()
		if len(r.waiting) == 0 {
			close(r.idle)
			r.idle = nil
			r.mu.Unlock()
			return
		}
		dir := r.waiting[0]
		r.waiting = r.waiting[1:]
		r.mu.Unlock()
		removeGone(dir)
	}
}
