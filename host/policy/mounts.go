package policy

import (
	"slices"

	"github.com/stockade-dev/stockade/host/tool"
)

// MergeMounts returns one mount for each directory: read-only if any mount of the directory
// is.
func MergeMounts(mounts []Mount) []Mount {
	var out []Mount
	for _, m := range mounts {
		i := slices.IndexFunc(out, func(o Mount) bool { return o.Host == m.Host })
		switch {
		case i < 0:
			out = append(out, m)
		case out[i].Write:
			out[i] = m
		}
	}
	return out
}

// Mounts returns the mounts of tools without an allowance: those of the options, as far as the
// ceiling permits them.
func (p *Policy) Mounts() []Mount { return slices.Clone(p.defaultAccess.mounts) }

// MountsOf returns the mounts of a tool. They count only if it asks for files or commands.
func (p *Policy) MountsOf(e *tool.Entry) []Mount { return slices.Clone(p.accessOf(e).mounts) }
