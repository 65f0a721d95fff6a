package jail

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/stockade-dev/stockade/host/jail/wire"
)

// idle is how long a helper waits for the next command: it holds what is mounted.
const idle = time.Minute

// waiting is a helper that was started ahead for the next command of a plan.
type waiting struct {
	plan   plan
	helper *helper
	timer  *time.Timer
}

// take returns a helper for a plan: the one that waits, if it fits, or a new one.
func (j *Jail) take(ctx context.Context, p plan) (*helper, error) {
	if n := j.swap(nil); n != nil {
		n.timer.Stop()
		if reflect.DeepEqual(n.plan.world, p.world) && slices.Equal(n.plan.found, p.found) && n.helper.alive() {
			return n.helper, nil
		}
		j.ahead.Go(n.helper.kill)
	}
	return p.start(ctx)
}

// start starts a helper for a plan.
func (p plan) start(ctx context.Context) (*helper, error) {
	w := p.world
	var clean []func()
	if p.scratch {
		scratch, err := os.MkdirTemp("", "stockade-exec-")
		if err != nil {
			return nil, err
		}
		w.Remove = scratch
		clean = append(clean, func() { removeTree(scratch) })
		w.Home, w.Tmp, w.Masks = filepath.Join(scratch, "home"), filepath.Join(scratch, "tmp"), filepath.Join(scratch, "masks")
		if err := makePrivate(w); err != nil {
			removeTree(scratch)
			return nil, err
		}
	}
	h, err := start(ctx, w)
	if err != nil {
		for _, f := range clean {
			f()
		}
		return nil, err
	}
	h.clean = clean
	return h, nil
}

// makePrivate makes the directories that the command has for itself, where it has
// no root of its own.
func makePrivate(w wire.World) error {
	for _, dir := range []string{w.Home, w.Tmp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		if err := os.Chown(dir, w.UID, w.GID); err != nil {
			return err
		}
	}
	if os.Getuid() == 0 { // whose scratch directory nobody else could enter
		if err := os.Chmod(filepath.Dir(w.Home), 0o711); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(w.Masks, "dir"), 0o700); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Join(w.Masks, "dir"), 0); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.Masks, "file"), nil, 0)
}

// after sees a helper off that has run its command, and starts one for the next
// command, which is probably like the last one. Nobody waits for either: to undo
// namespaces takes the kernel longer than most of the rest.
func (j *Jail) after(used *helper, p plan) {
	j.ahead.Go(func() {
		used.kill()
		ctx, cancel := context.WithTimeout(context.Background(), idle)
		defer cancel()
		h, err := p.start(ctx)
		if err != nil {
			return // the next command will tell
		}
		n := &waiting{plan: p, helper: h}
		n.timer = time.AfterFunc(idle, func() {
			j.mu.Lock()
			ours := j.next == n
			if ours {
				j.next = nil
			}
			j.mu.Unlock()
			if ours {
				h.kill()
			}
		})
		if old := j.swap(n); old != nil {
			old.timer.Stop()
			old.helper.kill()
		}
	})
}

func (j *Jail) swap(n *waiting) *waiting {
	j.mu.Lock()
	defer j.mu.Unlock()
	old := j.next
	j.next = n
	return old
}

// Close ends the helper that waits. The jail can be used again.
func (j *Jail) Close() error {
	j.ahead.Wait()
	if n := j.swap(nil); n != nil {
		n.timer.Stop()
		n.helper.kill()
	}
	return nil
}
