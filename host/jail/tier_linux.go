package jail

import (
	"context"
	"fmt"
	"os"
	"strings"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/policy"
)

// mechanism is a way to confine. The zero mechanism confines nothing.
type mechanism struct {
	tier                policy.Tier // tier of the mechanism
	namespaces, newRoot bool
	landlock            int // ABI version of Landlock that is needed at least; 0: it is not used
	description         string
}

// mechanisms lists the ways to confine, the best first. Landlock 2 allows renames between
// directories, Landlock 6 keeps signals inside.
var mechanisms = []mechanism{
	{3, true, true, 2, "namespaces, a root of its own, Landlock"},
	{2, true, true, 0, "namespaces, a root of its own"},
	{2, true, false, 6, "namespaces, Landlock"},
	{1, false, false, 6, "Landlock"},
}

func bestTierBlocked() bool {
	return !HasHelper() || namespaceCause() != ""
}

// findTier tries the mechanisms, best first, and returns the first that works; zero: none does.
func (j *Jail) findTier() (Tiers, mechanism) {
	var t Tiers
	if _, err := helperImage(); err != nil {
		t.Unavailable = append(t.Unavailable, Unavailable{Why: err.Error(), Cause: CauseHelper})
		return t, mechanism{}
	}
	if abi, err := ll.LandlockGetABIVersion(); err == nil {
		t.Landlock = abi
	}
	for _, k := range mechanisms {
		if k.tier > j.maxTier || k.newRoot && j.noRoot {
			continue
		}
		lack := Unavailable{Tier: k.tier, Mechanism: k.description}
		if t.Landlock < k.landlock {
			lack.Why, lack.Cause = fmt.Sprintf("the kernel has version %d of Landlock, and at least %d is needed", t.Landlock, k.landlock), CauseLandlock
			if t.Landlock == 0 {
				lack.Why = "the kernel has no Landlock, or it is switched off"
			}
		} else if err := tryMechanism(k); err != nil {
			lack.Why = err.Error()
			if k.namespaces {
				lack.Cause = namespaceCause()
			}
		} else {
			t.Tier, t.Mechanism = k.tier, k.description
			return t, k
		}
		t.Unavailable = append(t.Unavailable, lack)
	}
	return t, mechanism{}
}

// namespaceCause returns a setting, or the filter of this program, that may forbid user
// namespaces or their use; "": no such obstacle is known.
func namespaceCause() Cause {
	for _, f := range []struct {
		file, word, value string // a line is the word and the value
		cause             Cause
	}{
		{"/proc/sys/user/max_user_namespaces", "", "0", CauseMaxNamespaces},
		{"/proc/sys/kernel/unprivileged_userns_clone", "", "0", CauseUserNamespace},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "", "1", CauseAppArmor},
		{"/proc/self/status", "Seccomp:", "2", CauseSeccomp},
	} {
		text, _ := os.ReadFile(f.file)
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(line, f.word); ok && strings.TrimSpace(value) == f.value {
				return f.cause
			}
		}
	}
	return ""
}

// tryMechanism returns an error if no world can be built with the mechanism k.
func tryMechanism(k mechanism) error {
	h, err := startHelper(context.Background(), k.bareWorld())
	if err == nil {
		h.kill()
	}
	return err
}

// bareWorld returns a world with only the system's files.
func (k mechanism) bareWorld() wire.World {
	w := wire.World{
		Namespaces: k.namespaces, NewRoot: k.newRoot, Landlock: k.landlock > 0,
		Home: "/run/home", Tmp: "/tmp", Masks: "/run/masks", Scratch: 1 << 20,
		UID: os.Getuid(), GID: os.Getgid(),
		Limits: wire.Limits{Memory: maxMemory, Processes: maxProcesses, Files: maxFiles, AllFiles: maxAllFiles, FileSize: maxFileSize},
	}
	w.Binds, w.Links = system()
	return w
}
