//go:build !linux

package jail

import (
	"runtime"

	"github.com/stockade-dev/stockade/host/policy"
)

// WhyNotStaged returns the reason why no command can run on a stage.
func (j *Jail) WhyNotStaged([]policy.Mount) string {
	return "nothing keeps what a command changes apart on " + runtime.GOOS
}
