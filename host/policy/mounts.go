package policy

import (
	"slices"

	"github.com/stockade-dev/stockade/host/tool"
)

// MergeMounts are the mounts with one for each directory: of one that is named
// twice the narrower form holds.
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

// Mounts are those that tools are shown which were given nothing of their own: as
// the options name them, and as far as the ceiling permits.
func (p *Policy) Mounts() []Mount { return slices.Clone(p.defaultAccess.mounts) }

// MountsOf are those that a tool is shown, as far as it sees files.
func (p *Policy) MountsOf(e *tool.Entry) []Mount { return slices.Clone(p.accessOf(e).mounts) }
