package wasi

import (
	"errors"
	"fmt"

	"github.com/stockade-dev/stockade/host/policy/paths"
)

// Some file systems hold no files: they show the kernel and every process. In
// that of /proc a guest would find the memory and the environment of the host.
// No guest gets anything there, whatever is mounted: the usual ones are hidden
// under the names that they have, and the file system of each handle is asked
// for, unless it is on the device of the open directory that it was looked up
// in, which was asked about before. The number of a device means one file system
// as long as something on it is open.

var errKernel = errors.New("it is on a file system that shows the kernel and its processes, which no tool is shown; leave this mount out")

// hideSystem hides [paths.SystemDirs], by name and identity, as what is masked
// is, in the mounts that could show them.
func (f *FS) hideSystem(crossed []bool) error {
	for _, p := range paths.SystemDirs() {
		trails, end, err := follow(p)
		if err != nil {
			return fmt.Errorf("hide %s: %w", p, err)
		}
		for i, m := range f.mounts {
			switch {
			case end != nil && sameHostFile(end, m.info):
				return fmt.Errorf("mount %s: it is %s, which no tool is shown; leave this mount out", m.host, p)
			case crossed[i] || passes(trails, m.info):
				m.hide(trails, end)
			}
		}
	}
	return nil
}
