package jail

import (
	"embed"
	"runtime"

	"github.com/stockade-dev/stockade/host/policy"
)

// dist holds the helper as the build has made it, by platform: GOOS_GOARCH.
// Without it nothing is confined.
//
//go:embed all:dist
var dist embed.FS

const platform = runtime.GOOS + "_" + runtime.GOARCH

// HasHelper reports whether the program was built with the helper of the jail, or for a
// system on which there is none.
func HasHelper() bool {
	_, err := dist.Open("dist/" + platform)
	return err == nil || runtime.GOOS != "linux"
}

// Tiers says how far processes are confined here.
type Tiers struct {
	Tier      policy.Tier
	Mechanism string // what confines them in it; empty: nothing
	// Landlock is the version of its ABI; 0: there is none.
	Landlock int
	// Unavailable says, for each better way to confine, the best first, why it is not to
	// be had.
	Unavailable []Unavailable
}

// Unavailable is a way to confine that is not to be had here.
type Unavailable struct {
	Tier      policy.Tier // that it would be; 0: all of them
	Mechanism string      // what it consists of
	Why       string      // what failed
	Cause     Cause
}

// Cause is why something is lacking, as far as that is known; empty: it is not.
type Cause string

// The causes. A name with dots is a setting of the system.
const (
	CausePlatform      Cause = "platform" // not on this system yet
	CauseHelper        Cause = "helper"   // the program was built without it
	CauseLandlock      Cause = "landlock" // the kernel has none, or an old one, or it is switched off
	CauseMaxNamespaces Cause = "user.max_user_namespaces"
	CauseUserNamespace Cause = "kernel.unprivileged_userns_clone"
	CauseAppArmor      Cause = "kernel.apparmor_restrict_unprivileged_userns"
	CauseSeccomp       Cause = "seccomp" // a filter holds this program itself: that of a container, as a rule
)
