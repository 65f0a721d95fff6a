package wasi

import (
	"fmt"

	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/rootedfs"
)

// Some file systems hold no files: they show the kernel and every process. On Linux, package
// rootedfs opens nothing there, wherever they are mounted. The usual ones are hidden too,
// under their usual names.

// hideSystem hides [paths.SystemDirs], by name and identity like masked paths, in every mount
// that could show them. A mount that is one of them is an error. crossed has an element for
// each mount: true if it holds another mount point.
func (f *FS) hideSystem(seen lstatCache, crossed []bool) error {
	for _, p := range paths.SystemDirs() {
		trails, end, err := seen.follow(p)
		if err != nil {
			return fmt.Errorf("hide %s: %w", p, err)
		}
		for i, m := range f.mounts {
			switch {
			case end != nil && rootedfs.SameFile(end, m.info):
				return fmt.Errorf("mount %s: it is %s, which no tool is shown; leave this mount out", m.host, p)
			case crossed[i] || passThrough(trails, m.info):
				m.hide(trails, end)
			}
		}
	}
	return nil
}
