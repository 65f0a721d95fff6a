package jail

import (
	"context"
	"fmt"
	"os"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/policy"
)

// kind is a way to confine. The zero kind confines nothing.
type kind struct {
	tier                policy.Tier
	namespaces, newRoot bool
	landlock            int // the least version of its ABI; 0: it goes without
	needs               string
}

// kinds are the ways to confine, the best first. The second version of Landlock
// renames between directories, the sixth keeps signals inside.
var kinds = []kind{
	{3, true, true, 2, "namespaces, a root of its own, Landlock"},
	{2, true, true, 0, "namespaces, a root of its own"},
	{2, true, false, 6, "namespaces, Landlock"},
	{1, false, false, 6, "Landlock"},
}

// find tries which is the best way to confine.
func (j *Jail) find() (Tiers, kind) {
	var t Tiers
	if _, err := image(); err != nil {
		t.Lacks = append(t.Lacks, err.Error())
		return t, kind{}
	}
	if abi, err := ll.LandlockGetABIVersion(); err == nil {
		t.Landlock = abi
	}
	for _, k := range kinds {
		if k.tier > j.most || k.newRoot && j.noRoot {
			continue
		}
		err := fmt.Errorf("the kernel has version %d of Landlock, and %d is the least", t.Landlock, k.landlock)
		if t.Landlock >= k.landlock {
			err = try(k)
		}
		if err == nil {
			t.Tier = k.tier
			return t, k
		}
		t.Lacks = append(t.Lacks, fmt.Sprintf("tier %d (%s): %v", k.tier, k.needs, err))
	}
	return t, kind{}
}

// try builds a world of that kind, and drops it.
func try(k kind) error {
	w := wire.World{
		Namespaces: k.namespaces, NewRoot: k.newRoot, Landlock: k.landlock > 0,
		Home: "/run/home", Tmp: "/tmp", Masks: "/run/masks", Scratch: 1 << 20,
		UID: os.Getuid(), GID: os.Getgid(),
	}
	w.Binds, w.Links = system()
	h, err := start(context.Background(), w)
	if err == nil {
		h.kill()
	}
	return err
}
