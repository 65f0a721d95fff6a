package jail

import (
	"embed"

	"github.com/stockade-dev/stockade/host/policy"
)

// dist holds the helper as the build has made it, by platform: GOOS_GOARCH.
// Without it nothing is confined.
//
//go:embed all:dist
var dist embed.FS

// Tiers says how far processes are confined here.
type Tiers struct {
	Tier policy.Tier
	// Landlock is the version of its ABI; 0: there is none.
	Landlock int
	// Lacks says, for each tier above, why it is not reached.
	Lacks []string
}
