//go:build !linux

package jail

import (
	"context"
	"runtime"

	"github.com/stockade-dev/stockade/host/effect"
	"github.com/stockade-dev/stockade/host/policy"
)

type kind struct{}

type waiting struct{}

func (j *Jail) find() (Tiers, kind) {
	return Tiers{Lacks: []Lack{{Why: "nothing confines processes on " + runtime.GOOS + " yet", Cause: CausePlatform}}}, kind{}
}

func hindered() bool { return true }

func (j *Jail) confined(ctx context.Context, _ policy.Grant, _ policy.Exec, program string, cmd effect.Command, out streams) (effect.Ended, error) {
	return j.unconfined(ctx, program, cmd, out)
}

// Close ends what waits for the next command: nothing.
func (j *Jail) Close() error { return nil }
