package policy

import "slices"

// Narrowest are the mounts with one for each directory: of one that is named
// twice the narrower form holds.
func Narrowest(mounts []Mount) []Mount {
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

// Mounts are those that tools are shown: as the options name them, and as far as
// the ceiling permits.
func (p *Policy) Mounts() []Mount { return slices.Clone(p.mounts) }
