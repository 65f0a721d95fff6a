package jail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/stage"
)

// Limits of one command. See wire.Limits.
const (
	maxMemory    = 8 << 30  // bytes of data of each process
	maxProcesses = 2048     // processes and threads together
	maxFiles     = 8192     // open files of each process
	maxAllFiles  = 65536    // open files of all processes; a command with more is ended
	maxFileSize  = 16 << 30 // bytes of each file that it writes or copies
	maxScratch   = 2 << 30  // bytes in the command's own directories together, with its own root
)

func (j *Jail) runConfined(ctx context.Context, grant policy.Grant, terms policy.Exec, program string, cmd services.Command, out streams) (services.CommandResult, error) {
	_, k := j.tiers()
	if k.tier == policy.TierNone {
		return j.runUnconfined(ctx, program, cmd, out)
	}
	p, err := j.plan(k, terms, cmd.Dir)
	if err != nil {
		return services.CommandResult{}, err
	}
	if ctx.Err() != nil {
		return services.CommandResult{}, ctx.Err()
	}
	staged := terms.Changes == policy.ChangesStaged
	if staged {
		if err := p.useStage(j); err != nil {
			return services.CommandResult{}, err
		}
	}
	c := wire.Command{Program: program, Argv: cmd.Argv, Dir: cmd.Dir}
	b, err := p.scanMounts(ctx, terms, out.ownRedactor, j.Histories, &c)
	if err != nil {
		return services.CommandResult{}, err
	}
	if grant.Rehearsal() && !b.snapshot.Complete {
		// The command could read the other secrets, and the model gets its output if it
		// changes nothing.
		return services.CommandResult{}, fmt.Errorf("%w: the workspace is too large to find all that looks like a secret", policy.ErrAskFirst)
	}
	c.ReadOnly = append(c.ReadOnly, p.readOnlyMounts...)
	h, err := j.takeHelper(ctx, p)
	if err != nil {
		return services.CommandResult{}, err
	}
	c.Env = p.environment(h.world, cmd.Dir)
	since, layers := stage.FileClockNow(), h.layers
	h.layers = nil
	for _, l := range h.stageLayers {
		l.NoteIndex()
	}
	checks := []func() error{b.newSecretCheck(ctx, &p, terms), layers.sizeCheck()}
	if staged {
		checks = append(checks, freeSpaceCheck(p.area.Dir()))
	}
	running, stop := withChecks(ctx, checks...)
	ended, err := h.run(running, c, out, func(l net.Listener) error { return j.Proxy.ServeProxy(running, l, grant) })
	stopErr := stop()
	out.collect(&ended)
	b.addHints(&ended)
	if (ended.Code == nil || *ended.Code != 0) && terms.Network == nil && h.triedNetwork(&ended) {
		ended.Notes = append(ended.Notes, noNetworkNote)
	}
	if errors.Is(err, errTooManyFiles) {
		stopErr, err = err, nil
	}
	j.addHistoryHints(b, &ended)
	p.addGitElsewhereHint(cmd.Dir, &ended)
	j.releaseLayers(layers, cmd.Stage, !noteStop(stopErr, &ended))
	if !staged {
		b.revertAndReport(&ended)
	} else if stopErr != nil {
		ended.Notes = append(ended.Notes, "nothing of what the command had changed is kept")
	} else if err == nil {
		err = h.collectChanges(ctx, cmd.Stage, since)
		if names := cmd.Stage.Skipped(); len(names) > 0 {
			ended.Notes = append(ended.Notes, "not made, because it is no file, directory or symbolic link: "+b.list(names))
		}
		if names := cmd.Stage.DroppedAttributes(); len(names) > 0 {
			ended.Notes = append(ended.Notes, "extended attributes and ACLs are not kept, only modes are: of "+b.list(names))
		}
	}
	ended.Notes = slices.Concat(ended.Notes, p.full(), h.notes)
	j.replaceHelper(h, p)
	return ended, err
}

// run runs the command c in the helper's world, and returns when all of its processes have
// ended. When ctx ends they are killed, which is no error. The caller has to kill the helper
// afterwards. serve serves the socket through which the command reaches hosts; it is called
// only if the world has a network.
func (h *helper) run(ctx context.Context, c wire.Command, out streams, serve func(net.Listener) error) (services.CommandResult, error) {
	var copying sync.WaitGroup
	defer copying.Wait()
	stop := context.AfterFunc(ctx, h.interrupt)
	defer stop()
	var outputs []*os.File
	endedNormally := false
	defer func() {
		if endedNormally {
			return
		}
		// If somebody else has killed the helper, processes that hold the streams may be left.
		for _, r := range outputs {
			_ = r.SetReadDeadline(time.Now().Add(time.Second))
		}
	}()
	pipe := func(w io.Writer) (*os.File, error) {
		r, writeEnd, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		outputs = append(outputs, r)
		copying.Go(func() {
			defer r.Close()
			_, _ = io.Copy(w, r) // until all processes that hold the other end have ended
		})
		return writeEnd, nil
	}
	stdout, err := pipe(out.stdout)
	if err != nil {
		return services.CommandResult{}, err
	}
	defer stdout.Close()
	stderr := stdout
	if out.stderr != out.stdout {
		if stderr, err = pipe(out.stderr); err != nil {
			return services.CommandResult{}, err
		}
		defer stderr.Close()
	}
	listener, err := h.startCommand(c, stdout, stderr)
	if listener != nil {
		copying.Go(func() { _ = serve(listener) }) // its clients see the errors
		defer listener.Close()
	}
	if err != nil && ctx.Err() == nil {
		h.interrupt() // its processes hold the streams
		return services.CommandResult{}, err
	}
	ended, err := h.waitEnded()
	endedNormally = err == nil
	if ctx.Err() != nil {
		return killedEnd(h.cpu()), nil
	}
	if err != nil {
		out := killedEnd(h.cpu())
		out.Notes = []string{fmt.Sprintf("the command ended because its jail did: %v", err)}
		return out, nil
	}
	if ended.TooManyFiles {
		err = errTooManyFiles
	}
	return services.CommandResult{Code: ended.Code, Signal: ended.Signal, CPU: time.Duration(ended.CPU)}, err
}

func (p *plan) environment(w wire.World, dir string) []string {
	env := append(environment(p.path, w.Home, w.Tmp, dir), p.env...)
	if p.area != nil {
		// Otherwise commands that only read would change files: git refreshes its index, and
		// Python writes compiled code.
		env = append(env, "GIT_OPTIONAL_LOCKS=0", "PYTHONDONTWRITEBYTECODE=1")
	}
	if w.Network {
		env = append(env, egress.ProxyEnv("127.0.0.1:"+wire.PortMark)...)
	}
	return env
}

// releaseLayers releases the layers of a command that has ended; nil: it has none. keep
// reports whether files that it has written to caches may be kept. If they may, and set is not
// nil, that waits: set.KeepCaches keeps them, or they are lost when the set ends before.
func (j *Jail) releaseLayers(h *layerSet, set *stage.Set, keep bool) {
	if h == nil {
		return
	}
	end := func(keep bool) {
		h.end(keep)
		j.background.Go(h.release)
	}
	if set == nil || !keep {
		end(keep)
		return
	}
	usedUnapproved := slices.ContainsFunc(h.layers, func(l commandLayer) bool { return l.group == unapprovedGroup && l.initialSize.Names > 0 })
	set.OnCacheDecision(end, usedUnapproved)
}

// plan describes a helper for commands with certain terms.
type plan struct {
	world          wire.World
	mounts         []policy.Mount
	masked         []string // paths below the binds that the policy hides from the command
	readOnlyMounts []string // read-only mounts inside of writable ones; empty with a new root

	home     string            // home of the user, without links; "": unknown
	storeDir string            // directory of the layers over caches
	layers   []layer           // layers over caches
	links    map[string]string // links from a home elsewhere to binds, by path relative to the home
	path     string            // value of PATH
	env      []string          // further variables, NAME=VALUE
	notes    []string          // notes for the result of the command
	// fileIDs holds device and inode at each bind and below each layer; zeros: no file. A
	// spare helper has mounted these files; meanwhile a name may lead to another file.
	fileIDs [][2]uint64
	// area holds the command's uncommitted changes; nil: the command does not run on a stage.
	area *stage.Area
}

func (j *Jail) plan(k mechanism, terms policy.Exec, dir string) (plan, error) {
	home, err := filepath.EvalSymlinks(j.Home)
	if err != nil || !filepath.IsAbs(home) {
		home = ""
	}
	p := plan{home: home, path: systemPath, links: map[string]string{}, world: wire.World{
		Namespaces: k.namespaces, NewRoot: k.newRoot, Landlock: k.landlock > 0,
		Home: home, Tmp: "/tmp", Masks: "/run/masks", Scratch: maxScratch,
		UID: os.Getuid(), GID: os.Getgid(),
	}}
	w := &p.world
	binds, links := system()
	w.Binds, w.Links = slices.Clone(binds), links
	workspace, err := p.mount(k, terms, dir)
	if err != nil {
		return p, err
	}
	if err := p.placePrivateDirs(); err != nil {
		return p, err
	}
	if os.Getuid() == 0 {
		var st unix.Stat_t
		if err := unix.Stat(workspace, &st); err != nil {
			return p, fmt.Errorf("working directory: %w", err)
		}
		w.UID, w.GID = int(st.Uid), int(st.Gid)
	}
	if terms.Network != nil {
		if j.Proxy == nil || !k.namespaces {
			return p, denied(fmt.Errorf("a command cannot reach hosts in %s: nothing keeps it from reaching all of them", k.tier))
		}
		w.Network = true
	}
	if home != "" {
		if config := gitConfig(home); config != "" {
			w.Files = map[string]string{".gitconfig": config}
		}
		p.storeDir = layerStore(j.LayersDir, home, workspace, k.newRoot)
		p.addCaches(j, terms)
	}
	slices.SortStableFunc(w.Binds, func(a, b wire.Bind) int { return strings.Compare(a.Path, b.Path) })
	w.Limits = wire.Limits{Memory: maxMemory, Processes: maxProcesses, Files: maxFiles, AllFiles: maxAllFiles, FileSize: maxFileSize}
	if j.change != nil {
		j.change(w)
	}
	find := func(name string) {
		var st unix.Stat_t
		_ = unix.Lstat(name, &st) // zero for a missing file
		p.fileIDs = append(p.fileIDs, [2]uint64{uint64(st.Dev), st.Ino})
	}
	for _, b := range w.Binds {
		find(b.Path)
	}
	for _, l := range p.layers {
		find(l.path)
	}
	return p, nil
}

// mount adds the mounts, except for those inside of masked directories. It returns the host's
// path of the innermost mount that contains dir, the working directory. It is an error if no
// mount does, if / is mounted, or if the mechanism cannot protect or hide a path.
func (p *plan) mount(k mechanism, terms policy.Exec, dir string) (workspace string, err error) {
	w := &p.world
	for _, m := range terms.Mounts {
		if slices.ContainsFunc(terms.Masked, func(dir string) bool { return paths.In(m.Host, dir) }) {
			continue
		}
		if m.Host == "/" {
			return "", denied(errors.New("/ is mounted, and a command cannot be confined to everything: mount the directories that are needed"))
		}
		w.Binds = slices.DeleteFunc(w.Binds, func(b wire.Bind) bool { return b.Path == m.Host })
		m.Write = m.Write && terms.Changes != policy.ChangesNone
		w.Binds = append(w.Binds, wire.Bind{Path: m.Host, Write: m.Write})
		p.mounts = append(p.mounts, m)
		if paths.In(dir, m.Host) && len(m.Host) > len(workspace) {
			workspace = m.Host
		}
	}
	if workspace == "" {
		return "", denied(fmt.Errorf("no mount shows the directory %s", dir))
	}
	for _, name := range terms.Masked {
		// If the name is a link its target is hidden, as from tools.
		real, err := filepath.EvalSymlinks(name)
		if err == nil && slices.ContainsFunc(w.Binds, func(b wire.Bind) bool { return paths.In(real, b.Path) }) {
			p.masked = append(p.masked, real)
		}
	}
	if len(p.masked) > 0 && !k.namespaces {
		return "", denied(fmt.Errorf("%s cannot hide %s from a command: it is in a directory that is mounted", k.tier, p.masked[0]))
	}
	for _, m := range p.mounts {
		if k.newRoot || m.Write || !slices.ContainsFunc(p.mounts, func(o policy.Mount) bool { return o.Write && paths.In(m.Host, o.Host) }) {
			continue // its bind prevents changes, or nothing has to
		}
		if !k.namespaces {
			return "", denied(fmt.Errorf("%s cannot keep a command from changing %s: it is in a directory that it may change", k.tier, m.Host))
		}
		p.readOnlyMounts = append(p.readOnlyMounts, m.Host)
	}
	return workspace, nil
}

// placePrivateDirs chooses paths for the command's own home and temporary directory. With the
// same path as the user's home, programs find caches in their usual places. But the place must
// not be in a directory that the command sees. Without a new root it chooses only the
// directory in which the helper makes both.
func (p *plan) placePrivateDirs() error {
	w := &p.world
	shown := func(name string) bool {
		return slices.ContainsFunc(w.Binds, func(b wire.Bind) bool { return paths.In(name, b.Path) })
	}
	if !w.NewRoot {
		// Other commands could change files there before this command uses them.
		dirs := slices.Compact([]string{os.TempDir(), "/tmp", "/var/tmp"})
		for _, dir := range dirs {
			if real, err := filepath.EvalSymlinks(dir); err == nil && filepath.IsAbs(real) && !shown(real) {
				w.Private = real
				return nil
			}
		}
		return denied(fmt.Errorf("a command has no place for its own files: each of %s is missing or mounted; set TMPDIR to another directory", strings.Join(dirs, ", ")))
	}
	if !filepath.IsAbs(w.Home) || w.Home == "/" || w.Home == w.Tmp || paths.In(w.Home, "/run") || shown(w.Home) {
		w.Home = "/run/home"
	}
	if shown(w.Tmp) {
		w.Tmp = "/run/tmp"
	}
	if shown(w.Home) || shown(w.Tmp) || shown("/run/scratch") {
		return denied(errors.New("/run is mounted, where a command has its own directories: mount only the parts of it that are needed"))
	}
	return nil
}
