package jail

import (
	"embed"
	"runtime"

	"github.com/stockade-dev/stockade/host/policy"
)

// dist holds the helper's program from the build, by platform: GOOS_GOARCH. Without it
// nothing is confined.
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

// Tiers describes the confinement of processes on this machine.
type Tiers struct {
	Tier      policy.Tier
	Mechanism string // parts of the confinement, in words; "": nothing is confined
	Landlock  int    // ABI version of the kernel's Landlock; 0: it has none, or is not used here
	// Unavailable lists better ways to confine that do not work here, the best first.
	Unavailable []Unavailable
}

// Unavailable is a way to confine that does not work here.
type Unavailable struct {
	Tier      policy.Tier // tier that this way would give; 0: any
	Mechanism string      // parts of the confinement, in words; "": any
	Why       string      // reason why it does not work, in words
	Cause     Cause       // obstacle to this way; "": it is not known
}

// Cause identifies an obstacle to a way to confine; "": it is unknown.
type Cause string

// The causes. Names with dots are settings of the system.
const (
	CausePlatform      Cause = "platform" // not implemented on this system
	CauseHelper        Cause = "helper"   // the program was built without the helper
	CauseLandlock      Cause = "landlock" // the kernel has no Landlock, an old version, or it is off
	CauseMaxNamespaces Cause = "user.max_user_namespaces"
	CauseUserNamespace Cause = "kernel.unprivileged_userns_clone"
	CauseAppArmor      Cause = "kernel.apparmor_restrict_unprivileged_userns"
	CauseSeccomp       Cause = "seccomp" // this program itself has a filter, usually that of a container
)
