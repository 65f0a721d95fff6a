package jail

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/rootedfs"
	"github.com/stockade-dev/stockade/host/stage"
)

// maxIdle is the time after which a spare helper that is not used is ended: it holds mounts.
const maxIdle = time.Minute

// closeGrace limits the time for which [Jail.Close] waits for removals of directories.
const closeGrace = time.Second

// startTimeout limits the start of a spare helper, for which the next command may already
// wait, and the try of a stage; then the helper is ended.
const startTimeout = 10 * time.Second

// spareHelper is a helper that was started ahead, for the next command with the same plan.
type spareHelper struct {
	plan   plan
	helper *helper
	timer  *time.Timer
}

func (n *spareHelper) fits(p plan) bool {
	return reflect.DeepEqual(n.plan.world, p.world) && n.plan.storeDir == p.storeDir && slices.Equal(n.plan.layers, p.layers) && n.plan.area == p.area && slices.Equal(n.fileIDs(), p.fileIDs) && n.helper.alive() && n.helper.mountsUnchanged() &&
		!slices.ContainsFunc(n.helper.stageLayers, func(l *stage.Layer) bool { return !l.Current() })
}

// fileIDs returns the plan's fileIDs. With a new root, those of binds are of the files that
// the helper has opened: since the plan was made, a name may lead to another file. While the
// helper holds the files open, no other file gets their inode numbers.
func (n *spareHelper) fileIDs() [][2]uint64 {
	out := slices.Clone(n.plan.fileIDs)
	copy(out, n.helper.ready.Found)
	return out
}

// takeHelper returns the spare helper if it fits the plan. Otherwise it starts a helper.
func (j *Jail) takeHelper(ctx context.Context, p plan) (*helper, error) {
	select {
	case j.startSem <- struct{}{}: // if a helper is being started, wait for it
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n := j.takeSpare()
	<-j.startSem
	if n != nil {
		n.timer.Stop()
		if n.fits(p) {
			return n.helper, nil
		}
		n.helper.kill() // it may hold the layers
	}
	return p.start(ctx)
}

// start starts a helper that builds the plan's world.
func (p plan) start(ctx context.Context) (_ *helper, err error) {
	w := p.world
	var clean []func()
	defer func() {
		if err != nil {
			for _, f := range clean {
				f()
			}
		}
	}()
	var layers *layerSet
	notes := slices.Clone(p.notes)
	if len(p.layers) > 0 {
		if layers, err = newLayerSet(p.storeDir, p.layers); err != nil {
			notes = append(notes, fmt.Sprintf("the command had none of the user's caches: %v", err))
		} else {
			defer func() {
				if err != nil {
					layers.release()
				}
			}()
			for _, l := range layers.layers {
				w.Layers = append(w.Layers, l.Layer)
			}
		}
	}
	if !w.NewRoot {
		w.HomeLinks = p.unlayer(&w)
	}
	var stages []*stage.Layer
	if p.area != nil {
		if stages, err = p.addStageLayers(&w); err != nil {
			return nil, err
		}
	}
	h, err := startHelper(ctx, w)
	if err != nil {
		for _, l := range stages {
			l.Drop()
		}
		return nil, err
	}
	h.stageLayers = stages
	if !w.NewRoot {
		h.world.Home, h.world.Tmp = h.ready.Home, h.ready.Tmp
		clean = append(clean, func() { _ = rootedfs.Discard(filepath.Dir(h.ready.Home), w.Private) })
		rootedfs.Sweep(w.Private)
	}
	h.cleanups, h.notes, h.layers = clean, notes, layers
	h.noteLayers()
	return h, nil
}

// noteLayers adds a note to the helper for each layer that could not be mounted, and sets
// direct of all layers.
func (h *helper) noteLayers() {
	if h.layers == nil {
		return
	}
	for i := range h.layers.layers {
		l := &h.layers.layers[i]
		why, missing := h.ready.NoLayers[l.Path]
		if missing {
			h.notes = append(h.notes, fmt.Sprintf("the command could not change, or began without, %s: %s", l.Path, why))
		}
		l.direct = (missing || !h.world.NewRoot) && l.Alone == l.storedDir
	}
}

// unlayer replaces all layers of w by binds, for a helper that cannot mount: by a writable
// bind of the layer's Alone, or else by a bind of the directory itself. It returns the links
// in the command's home that lead to the binds: targets by path relative to the home.
func (p plan) unlayer(w *wire.World) map[string]string {
	links := maps.Clone(p.links)
	w.Binds = slices.Clone(w.Binds)
	for _, l := range w.Layers {
		b := wire.Bind{Path: l.Path}
		if l.Alone != "" {
			b = wire.Bind{Path: l.Alone, Write: true}
		}
		w.Binds = append(w.Binds, b)
		links[strings.TrimPrefix(l.Path, p.home)] = b.Path
	}
	w.Layers = nil
	return links
}

// replaceHelper ends a used helper, and starts a spare helper with the same plan for the next
// command. It does so in the background, because the kernel is slow to remove namespaces. If
// the plan has layers, a command that needs a helper meanwhile waits for it.
func (j *Jail) replaceHelper(used *helper, p plan) {
	waits := false
	if len(p.layers) > 0 {
		select {
		case j.startSem <- struct{}{}:
			waits = true
		default:
		}
	}
	j.background.Go(func() {
		if waits {
			defer func() { <-j.startSem }()
		}
		used.kill()
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		h, err := p.start(ctx)
		if err != nil {
			return // the next command will report it
		}
		n := &spareHelper{plan: p, helper: h}
		n.timer = time.AfterFunc(maxIdle, func() {
			j.mu.Lock()
			isSpare := j.spare == n
			if isSpare {
				j.spare = nil
			}
			j.mu.Unlock()
			if isSpare {
				h.kill()
			}
		})
		j.mu.Lock()
		old := j.spare
		j.spare = n
		j.mu.Unlock()
		if old != nil {
			old.timer.Stop()
			old.helper.kill()
		}
	})
}

// takeSpare removes the spare helper from the jail and returns the helper; nil: there is none.
func (j *Jail) takeSpare() *spareHelper {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := j.spare
	j.spare = nil
	return n
}

// Close waits for background work and ends the spare helper. The jail can be used again
// afterwards. The error is always nil.
func (j *Jail) Close() error {
	j.background.Wait()
	if n := j.takeSpare(); n != nil {
		n.timer.Stop()
		n.helper.kill()
	}
	j.areaMu.Lock()
	defer j.areaMu.Unlock()
	j.area, j.whyNoArea = nil, ""
	rootedfs.AwaitRemovals(closeGrace)
	return nil
}
