package jail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/rootedfs"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/host/tool"
)

// WhyNotStaged returns the reason why commands with these mounts cannot run on a stage, so
// that their changes would take effect at once; "": they can run on one. If no area was tried
// yet it tries some, which takes milliseconds.
func (j *Jail) WhyNotStaged(mounts []policy.Mount) string {
	_, k := j.tiers()
	if !k.newRoot {
		return "nothing can be mounted for a command here"
	}
	for _, m := range mounts {
		if !m.Write {
			continue
		}
		if why := whyNotStaged(m.Host); why != "" {
			return why
		}
	}
	_, why := j.findStageArea(k)
	return why
}

// unstageableFS maps the types of file systems that do not work below an overlay, or whose
// times come from another clock, to their names.
var unstageableFS = map[int64]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.FUSE_SUPER_MAGIC: "FUSE", unix.V9FS_MAGIC: "9p", unix.SMB_SUPER_MAGIC: "SMB",
	unix.SMB2_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "SMB", unix.AFS_SUPER_MAGIC: "AFS", unix.CEPH_SUPER_MAGIC: "Ceph",
}

// whyNotStaged returns the reason why a directory cannot be staged; "": it can.
func whyNotStaged(dir string) string {
	var st unix.Stat_t
	var sys unix.Statfs_t
	if err := errors.Join(unix.Stat(dir, &st), unix.Statfs(dir, &sys)); err != nil {
		return fmt.Sprintf("%s: %v", dir, err)
	}
	if name, ok := unstageableFS[int64(sys.Type)]; ok {
		return fmt.Sprintf("%s is on %s", dir, name)
	}
	if rootedfs.HoldsMountPoint(dir) {
		return fmt.Sprintf("another file system is mounted below %s", dir)
	}
	// In a namespace of a user no other user has a name, so files of others cannot be copied.
	if uid := os.Getuid(); uid != 0 && (int(st.Uid) != uid || int(st.Gid) != os.Getgid()) {
		return fmt.Sprintf("%s belongs to another user or group", dir)
	}
	return ""
}

// findStageArea returns the directory for changes of staged commands, or nil and the reason
// why no directory suits. The first call tries.
func (j *Jail) findStageArea(k mechanism) (*stage.Area, string) {
	j.areaMu.Lock()
	defer j.areaMu.Unlock()
	if j.area != nil || j.whyNoArea != "" {
		return j.area, j.whyNoArea
	}
	j.whyNoArea = "there is no place for what they change"
	if j.Areas == nil {
		return nil, j.whyNoArea
	}
	first := true
	for area := range j.Areas {
		err := tryStage(k, area)
		if err == nil {
			j.area, j.whyNoArea = area, ""
			break
		}
		if first {
			j.whyNoArea += ": " + err.Error()
		}
		first = false
	}
	return j.area, j.whyNoArea
}

// tryStage runs a command on a stage in an area. Mounting an overlay is not enough of a test:
// on some file systems the overlay loses its marks.
func tryStage(k mechanism, area *stage.Area) error {
	if area.Dir() == "" {
		return errors.New("the directory cannot be made")
	}
	lower, err := os.MkdirTemp(area.Dir(), "probe-")
	if err != nil {
		return err
	}
	defer removeTree(lower)
	if err := errors.Join(os.Mkdir(filepath.Join(lower, "d"), 0o755), os.WriteFile(filepath.Join(lower, "d", "old"), nil, 0o600)); err != nil {
		return err
	}
	stage.NoteWrite() // otherwise the clock may not have ticked, and the file seems to change while the command runs
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	p := plan{world: k.bareWorld(), area: area}
	p.world.Binds = append(p.world.Binds, wire.Bind{Path: lower, Write: true})
	h, err := p.start(ctx)
	if err != nil {
		return err
	}
	defer h.kill()
	since := stage.FileClockNow()
	var silent *redact.Redactor
	out := streams{stdout: silent.Writer(io.Discard)}
	out.stderr = out.stdout
	ended, err := h.run(ctx, wire.Command{
		Program: "/bin/sh", Argv: []string{"sh", "-c", "rm -r d && mkdir d && echo new >d/new"}, Dir: lower, Env: environment(systemPath, "/run/home", "/tmp", lower),
	}, out, nil)
	if err == nil && (ended.Code == nil || *ended.Code != 0) {
		err = errors.New("a command failed on it")
	}
	if err != nil {
		return err
	}
	set, err := stage.New(nil)
	if err != nil {
		return err
	}
	defer func() { _ = set.Drop() }()
	if err := h.collectChanges(ctx, set, since); err != nil {
		return err
	}
	changes, err := set.Changes(ctx)
	if err != nil {
		return err
	}
	if len(changes) != 2 || changes[0].Kind != tool.Created || changes[1].Kind != tool.Removed {
		return fmt.Errorf("%d changes were found of two that were made", len(changes))
	}
	return nil
}

// maxStaged limits the disk space in bytes that a staged command may take while it runs; then
// it is ended. Half of the free space is a limit, too.
var maxStaged uint64 = 8 << 30

var errFull = &stopError{why: "it has taken too much room on the disk where its changes are kept apart"}

// errTooManyFiles: the helper has ended the command because of its open files.
var errTooManyFiles = &stopError{why: fmt.Sprintf("its processes had more than %d files open together, and that is the most they may have", maxAllFiles)}

// minFreeBytes is the free space below which the result says that the disk is full.
const minFreeBytes = 1 << 20

// full returns a note for each mount that the command may change and whose disk is full.
func (p plan) full() (notes []string) {
	for _, m := range p.mounts {
		if free := freeSpace(m.Host); m.Write && free.Bytes < minFreeBytes {
			notes = append(notes, fmt.Sprintf("the disk is full where %s is: remove something before you go on", m.Host))
		}
	}
	return notes
}

// freeSpaceCheck returns a check that returns errFull if the free space has shrunk by
// maxStaged, or by half if that is less. Space that others take at the same time counts, too.
func freeSpaceCheck(dir string) func() error {
	begin := freeSpace(dir)
	limit := begin.Bytes - min(begin.Bytes/2, int64(maxStaged))
	return func() error {
		if now := freeSpace(dir); now.Bytes < limit {
			return errFull
		}
		return nil
	}
}

// withChecks returns a context that ends with the first error of the checks, which run every
// 100 ms. stop ends the checks and returns the error that has ended the context; nil: the
// context had not ended.
func withChecks(ctx context.Context, checks ...func() error) (_ context.Context, stop func() error) {
	ctx, cancel := context.WithCancelCause(ctx)
	ticker, done := time.NewTicker(100*time.Millisecond), make(chan struct{})
	go func() {
		defer close(done)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			for _, check := range checks {
				if err := check(); err != nil {
					cancel(err)
				}
			}
		}
	}()
	ended := errors.New("the command has ended")
	return ctx, func() error {
		cancel(ended)
		<-done
		if err := context.Cause(ctx); err != ended {
			return err
		}
		return nil
	}
}

func (p *plan) useStage(j *Jail) error {
	_, k := j.tiers()
	if why := j.WhyNotStaged(p.mounts); why != "" {
		return denied(fmt.Errorf("the command was allowed because its changes are kept apart, and here they cannot be: %s", why))
	}
	p.area, _ = j.findStageArea(k)
	return nil
}

// addStageLayers makes and returns a layer of a stage for each writable bind of a world,
// except for devices, and sets Upper and Work of the bind.
func (p plan) addStageLayers(w *wire.World) (layers []*stage.Layer, err error) {
	w.Binds = slices.Clone(w.Binds)
	for i, b := range w.Binds {
		if !b.Write || b.Device {
			continue
		}
		l, err := p.area.NewLayer(b.Path)
		if err != nil {
			for _, l := range layers {
				l.Drop()
			}
			return nil, fmt.Errorf("make a stage for %s: %w", b.Path, err)
		}
		layers = append(layers, l)
		w.Binds[i].Upper, w.Binds[i].Work = l.Upper, l.Work
	}
	return layers, nil
}

// collectChanges moves the changes of the command to set. since is the time of its start.
// After an error the set is empty.
func (h *helper) collectChanges(ctx context.Context, set *stage.Set, since time.Time) error {
	layers := h.stageLayers
	h.stageLayers = nil
	for i, l := range layers {
		if err := set.Collect(ctx, l, since); err != nil {
			for _, l := range layers[i+1:] {
				l.Drop()
			}
			set.Forget()
			return err
		}
	}
	return nil
}
