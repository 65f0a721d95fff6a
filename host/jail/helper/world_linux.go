package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/wire"
)

// build builds the part of the world that does not depend on the command.
func build(w *wire.World) wire.Ready {
	// Orphans become children of this process, which ends them.
	err := step(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl PR_SET_CHILD_SUBREAPER")
	if err == nil && w.Namespaces && !isOmitted("net") {
		err = step(loopback(), "bring up the loopback") // for servers of the command
	}
	var out wire.Ready
	if err == nil && w.NewRoot {
		err = newRoot(w, &out)
	} else if err == nil {
		if w.Namespaces {
			limitInotify("/proc")
			err = step(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), "make mounts private")
		}
		if err == nil && w.Private != "" {
			err = step(makePrivateDirs(w), "make directories of the command's own")
		}
		out.Home, out.Tmp = w.Home, w.Tmp
	}
	if err != nil {
		f := failed(err)
		return wire.Ready{Step: f.Step, Err: f.Err}
	}
	return out
}

// privateDir is the directory that makePrivateDirs has made; "": none.
var privateDir string

// makePrivateDirs makes the command's own directories, with the initial files of its home, if
// the command has no root of its own.
func makePrivateDirs(w *wire.World) error {
	dir, err := os.MkdirTemp(w.Private, "stockade-exec-")
	if err != nil {
		return err
	}
	privateDir = dir
	w.Home, w.Tmp, w.Masks = path.Join(dir, "home"), path.Join(dir, "tmp"), path.Join(dir, "masks")
	for _, name := range []string{w.Home, w.Tmp} {
		err = firstErr(err, os.Mkdir(name, 0o700), os.Chown(name, w.UID, w.GID))
	}
	for name, text := range w.Files {
		file := path.Join(w.Home, name)
		err = firstErr(err, os.WriteFile(file, []byte(text), 0o600), os.Chown(file, w.UID, w.GID))
	}
	for name, target := range w.HomeLinks {
		link := path.Join(w.Home, name)
		err = firstErr(err, os.MkdirAll(path.Dir(link), 0o700), os.Symlink(target, link))
	}
	if os.Getuid() == 0 { // only root could enter the directory
		err = firstErr(err, os.Chmod(dir, 0o711))
	}
	masks := path.Join(w.Masks, "dir")
	return firstErr(err, os.MkdirAll(masks, 0o700), os.Chmod(masks, 0), os.Mkdir(path.Join(w.Masks, "empty"), 0o755), os.Chmod(path.Join(w.Masks, "empty"), 0o755), os.WriteFile(path.Join(w.Masks, "file"), nil, 0))
}

// newRoot builds a root directory with the files of the world, and makes it the root of this
// process. It fills NoLayers and Found of r.
func newRoot(w *wire.World, r *wire.Ready) error {
	r.Found, r.NoLayers = make([][2]uint64, len(w.Binds)), map[string]string{}
	found := func(i int, place int) {
		var st unix.Stat_t
		_ = unix.Fstat(place, &st)
		r.Found[i] = [2]uint64{uint64(st.Dev), st.Ino}
	}
	var err error
	// All files of the host are opened before anything is mounted over them.
	trees := make([]int, len(w.Binds))
	for i, b := range w.Binds {
		if b.Upper != "" {
			trees[i], err = overlay(wire.Layer{Lower: []string{b.Path}, Upper: b.Upper, Work: b.Work}, func(place int) { found(i, place) })
		} else {
			trees[i], err = cloneBind(b, func(place int) { found(i, place) })
		}
		if err != nil {
			return err
		}
	}
	layers := make([]int, len(w.Layers))
	for i, l := range w.Layers {
		// A bind would reveal the path of Upper, in /proc/self/mountinfo.
		if layers[i], err = overlay(l, nil); err == nil {
			continue
		}
		r.NoLayers[l.Path] = err.Error()
		b := wire.Bind{Path: l.Path}
		if l.Alone != "" {
			b = wire.Bind{Path: l.Alone, Write: true}
		}
		if layers[i], err = cloneBind(b, nil); err != nil {
			return err
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return step(err, "make mounts private")
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV
	if err := unix.Mount("stockade", "/proc", "tmpfs", flags, "mode=0755,size=1m"); err != nil {
		return step(err, "mount a root")
	}
	if err := unix.Chdir("/proc"); err != nil {
		return step(err, "enter the root")
	}
	in := func(name string) string { return "." + path.Clean("/"+name) }
	for _, name := range slices.Sorted(maps.Keys(w.Links)) {
		if err := firstErr(os.MkdirAll(path.Dir(in(name)), 0o755), os.Symlink(w.Links[name], in(name))); err != nil {
			return step(err, "make %s", name)
		}
	}
	if err := firstErr(os.MkdirAll("./etc", 0o755), os.WriteFile("./etc/resolv.conf", []byte(resolver), 0o644)); err != nil {
		return step(err, "make /etc/resolv.conf")
	}
	// The command's own directories share one file system, so that they share one limit.
	if err := firstErr(os.MkdirAll("./run/scratch", 0o755),
		unix.Mount("scratch", "./run/scratch", "tmpfs", flags, fmt.Sprintf("mode=0755,size=%d,nr_inodes=1m", w.Scratch))); err != nil {
		return step(err, "mount a scratch file system")
	}
	for name, mode := range map[string]uint32{"home": 0o700, "tmp": 0o1777, "shm": 0o1777} {
		dir := "./run/scratch/" + name
		if err := firstErr(unix.Mkdir(dir, 0o700), unix.Chown(dir, w.UID, w.GID), unix.Chmod(dir, mode)); err != nil {
			return step(err, "make the scratch directory %s", name)
		}
	}
	// The home may be below the temporary directory.
	for _, dir := range []struct{ name, at string }{{"shm", "/dev/shm"}, {"tmp", w.Tmp}, {"home", w.Home}} {
		if err := firstErr(os.MkdirAll(in(dir.at), 0o755), unix.Mount("./run/scratch/"+dir.name, in(dir.at), "", unix.MS_BIND, "")); err != nil {
			return step(err, "mount %s", dir.at)
		}
	}
	for name, text := range w.Files {
		file := in(path.Join(w.Home, name))
		if err := firstErr(os.WriteFile(file, []byte(text), 0o600), unix.Lchown(file, w.UID, w.GID)); err != nil {
			return step(err, "write %s", name)
		}
	}
	for i, b := range w.Binds {
		if trees[i] < 0 {
			continue
		}
		if err := attach(trees[i], in(b.Path)); err != nil {
			return step(err, "mount %s", b.Path)
		}
	}
	for i, l := range w.Layers {
		if err := attach(layers[i], in(l.Path)); err != nil {
			return step(err, "mount %s", l.Path)
		}
	}
	if err := firstErr(os.MkdirAll("./newproc", 0o555), unix.Mount("proc", "./newproc", "proc", flags|unix.MS_NOEXEC, "")); err != nil {
		return step(err, "mount /proc")
	}
	// Since Linux 6.14 this setting belongs to the pid namespace. It also limits root, to
	// whom RLIMIT_NPROC does not apply.
	_ = os.WriteFile("./newproc/sys/kernel/pid_max", fmt.Appendf(nil, "%d", max(w.Limits.Processes, 301)), 0)
	limitInotify("./newproc")
	if err := firstErr(unix.Mkdir("./proc", 0o555), unix.Mount("./newproc", "./proc", "", unix.MS_MOVE, ""), unix.Rmdir("./newproc")); err != nil {
		return step(err, "mount /proc")
	}
	if err := firstErr(os.MkdirAll(in(w.Masks)+"/dir", 0o000), os.Mkdir(in(w.Masks)+"/empty", 0o755), os.Chmod(in(w.Masks)+"/empty", 0o755), os.WriteFile(in(w.Masks)+"/file", nil, 0o000), os.Chmod(in(w.Masks)+"/file", 0)); err != nil {
		return step(err, "make what covers masked names")
	}
	for _, name := range maskedProcFiles {
		if isOmitted("masks of /proc") {
			break
		}
		if err := mask(in(w.Masks), "/dir", "./proc/"+name); err != nil {
			return step(err, "mask /proc/%s", name)
		}
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return step(err, "pivot_root")
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return step(err, "let go of the old root")
	}
	if err := unix.Chdir("/"); err != nil {
		return step(err, "enter the root")
	}
	readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	for _, name := range []string{"/proc", "/run/scratch", "/"} {
		if isOmitted("read-only root") {
			break
		}
		if err := unix.MountSetattr(unix.AT_FDCWD, name, 0, &readOnly); err != nil {
			return step(err, "make %s read-only", name)
		}
	}
	return nil
}

// resolver is the resolv.conf of commands. It makes programs send name queries over TCP to an
// unused address, because the network's counters record that. Commands have no UDP.
const resolver = "# A command reaches no name server.\nnameserver 192.0.2.1\noptions use-vc attempts:1 timeout:1\n"

// maskedProcFiles are files of /proc about other users and their processes: keys, and what
// processes wait for.
var maskedProcFiles = []string{"keys", "key-users", "timer_list", "sched_debug", "latency_stats"}

// limitInotify limits the command to half of the user's inotify instances and watches; those
// outside also count. proc is the path of /proc. If it fails, the command runs without this
// limit.
func limitInotify(proc string) {
	for _, name := range []string{"instances", "watches"} {
		text, err := os.ReadFile(proc + "/sys/fs/inotify/max_user_" + name)
		most, notNumber := strconv.Atoi(strings.TrimSpace(string(text)))
		if err == nil && notNumber == nil && !isOmitted("inotify") {
			_ = os.WriteFile(proc+"/sys/user/max_inotify_"+name, strconv.AppendInt(nil, int64(most/2), 10), 0)
		}
	}
}

func firstErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// openNoLinks opens a file with O_PATH. It fails if a part of the name is a symbolic link.
func openNoLinks(name string) (int, error) {
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if err != unix.EAGAIN && err != unix.EINTR { // the kernel could not decide
			return fd, err
		}
	}
}

// cloneBind returns the descriptor of a copy of the mounts at a bind and below, with the
// attributes for the world; -1: an optional bind is missing. found, if not nil, is called with
// the opened file.
func cloneBind(b wire.Bind, found func(place int)) (int, error) {
	place, err := openNoLinks(b.Path)
	if err == unix.ENOENT && b.Optional {
		return -1, nil
	}
	if err != nil {
		return -1, step(err, "open %s", b.Path)
	}
	defer unix.Close(place)
	if found != nil {
		found(place)
	}
	var attr uint64
	if !isOmitted("nosuid") {
		attr |= unix.MOUNT_ATTR_NOSUID
	}
	if !b.Write && !isOmitted("read-only binds") {
		attr |= unix.MOUNT_ATTR_RDONLY
	}
	if !b.Device {
		attr |= unix.MOUNT_ATTR_NODEV
	}
	fd, err := clone(place, attr)
	return fd, step(err, "take %s", b.Path)
}

func clone(place int, attr uint64) (int, error) {
	fd, err := unix.OpenTree(place, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return -1, err
	}
	err = unix.MountSetattr(fd, "", unix.AT_RECURSIVE|unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: attr, Propagation: unix.MS_PRIVATE})
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// attach mounts a tree at a path in the new root, which it may make, and closes the tree.
func attach(tree int, name string) error {
	defer unix.Close(tree)
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return err
	}
	var have unix.Stat_t
	if err := unix.Lstat(name, &have); err == unix.ENOENT {
		if err := os.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			err = unix.Mkdir(name, 0o755)
		} else {
			err = unix.Mknod(name, unix.S_IFREG|0o644, 0)
		}
		if err != nil {
			return err
		}
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, name, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// overlay makes an overlay mount of the directories of a layer, and returns its descriptor.
// Directories are passed to the kernel as descriptors, because paths could be too long or
// contain special characters. found, if not nil, is called with each lower directory.
func overlay(l wire.Layer, found func(place int)) (int, error) {
	opts := []struct {
		key  string
		dirs []string
	}{{"lowerdir", l.Lower}, {"upperdir", []string{l.Upper}}, {"workdir", []string{l.Work}}}
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, step(err, "fsopen")
	}
	defer unix.Close(fs)
	_ = unix.FsconfigSetString(fs, "source", "stockade")
	if err := firstErr(unix.FsconfigSetFlag(fs, "userxattr"), unix.FsconfigSetFlag(fs, "volatile")); err != nil {
		return -1, step(err, "fsconfig")
	}
	for _, o := range opts {
		var names []string
		for _, dir := range o.dirs {
			place, err := openNoLinks(dir)
			if err != nil {
				return -1, step(err, "open %s", dir)
			}
			defer unix.Close(place)
			if o.key == "lowerdir" && found != nil {
				found(place)
			}
			names = append(names, fmt.Sprintf("/proc/self/fd/%d", place))
		}
		if err := unix.FsconfigSetString(fs, o.key, strings.Join(names, ":")); err != nil {
			return -1, step(err, "fsconfig %s", o.key)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, step(err, "mount an overlay")
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	return fd, step(err, "fsmount")
}

// cover mounts over the files of c that the command may not open, change or move.
func cover(w *wire.World, c *wire.Command) error {
	for _, names := range []struct {
		paths []string
		attr  uint64
	}{{c.Pinned, 0}, {c.ReadOnly, unix.MOUNT_ATTR_RDONLY}} {
		for _, name := range names.paths {
			place, err := openNoLinks(name)
			if err == unix.ENOENT {
				continue
			}
			if err != nil {
				return step(err, "open %s", name)
			}
			tree, err := clone(place, names.attr)
			if err == nil {
				err = mountOver(tree, place)
			}
			unix.Close(place)
			if err != nil {
				return step(err, "hold %s", name)
			}
		}
	}
	for _, name := range c.Masked {
		if isOmitted("masks") {
			break
		}
		if err := mask(w.Masks, "/dir", name); err != nil {
			return step(err, "mask %s", name)
		}
	}
	for _, name := range c.Emptied {
		if isOmitted("masks") {
			break
		}
		if err := mask(w.Masks, "/empty", name); err != nil {
			return step(err, "empty %s", name)
		}
	}
	return nil
}

// mask mounts masks/file, or masks+dir over a directory, over name. It skips a missing name.
func mask(masks, dir, name string) error {
	place, err := openNoLinks(name)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(place)
	var st unix.Stat_t
	if err := unix.Fstat(place, &st); err != nil {
		return err
	}
	source := masks + "/file"
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		source = masks + dir
	}
	from, err := openNoLinks(source)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	tree, err := clone(from, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	return mountOver(tree, place)
}

// mountOver mounts a tree over the open file or directory place, and closes the tree.
func mountOver(tree, place int) error {
	defer unix.Close(tree)
	return unix.MoveMount(tree, "", place, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}
