//go:build !linux

package jail

import (
	"context"
	"runtime"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/services"
)

type mechanism struct{}

type spareHelper struct{}

func (j *Jail) findTier() (Tiers, mechanism) {
	return Tiers{Unavailable: []Unavailable{{Why: "nothing confines processes on " + runtime.GOOS + " yet", Cause: CausePlatform}}}, mechanism{}
}

func bestTierBlocked() bool { return true }

func (j *Jail) runConfined(ctx context.Context, _ policy.Grant, _ policy.Exec, program string, cmd services.Command, out streams) (services.CommandResult, error) {
	return j.runUnconfined(ctx, program, cmd, out)
}

// Close does nothing: this system has no spare helper.
func (j *Jail) Close() error { return nil }
