package main

import (
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// countInterval is the time between two counts of the command's open files. In between, the
// command can exceed its limit.
const countInterval = 100 * time.Millisecond

// tooManyFiles reports whether the processes of the command have more than limit files open
// together. Threads share the open files of their process; the seccomp filter ensures that.
func tooManyFiles(limit uint64) bool {
	if isOmitted("open files") {
		return false
	}
	var sum uint64
	for _, process := range processes() {
		var st unix.Stat_t
		name := path.Join("/proc", process, "fd")
		if unix.Stat(name, &st) != nil {
			continue // the process has ended
		}
		n := uint64(st.Size)
		if n == 0 { // before Linux 6.2
			files, err := names(name)
			if n = uint64(len(files)); err != nil {
				n = maxUnseen
			}
		}
		if sum += n; sum > limit {
			return true
		}
	}
	return false
}

// maxUnseen is the number of open files assumed for a process whose files cannot be listed.
const maxUnseen = 1024

// processes returns the ids of the command's processes: all other processes in the pid
// namespace of this one or, if it has none of its own, its descendants.
func processes() (out []string) {
	if os.Getpid() == 1 {
		all, _ := names("/proc")
		for _, name := range all {
			if pid, err := strconv.Atoi(name); err == nil && pid != 1 {
				out = append(out, name)
			}
		}
		return out
	}
	const most = 1 << 16
	for todo := []string{"self"}; len(todo) > 0 && len(out) < most; todo = todo[1:] {
		threads := path.Join("/proc", todo[0], "task")
		ids, _ := names(threads)
		for _, id := range ids {
			children, _ := os.ReadFile(path.Join(threads, id, "children"))
			for _, child := range strings.Fields(string(children)) {
				out, todo = append(out, child), append(todo, child)
			}
		}
	}
	return out
}

func names(dir string) ([]string, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return list(fd)
}
