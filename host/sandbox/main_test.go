package sandbox_test

import (
	"context"
	"os"
	"testing"

	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/sandbox"
)

// TestMain lets this test binary be the process that compiles.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.ChildCommand {
		os.Exit(sandbox.CompileChild(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// helper starts real children, the way that the program does.
type helper struct{}

func (helper) Spawn(ctx context.Context, c sandbox.Child) (sandbox.Ended, error) {
	c.Args = append([]string{sandbox.ChildCommand}, c.Args...)
	ended, err := jail.RunHelper(ctx, jail.Helper(c))
	return sandbox.Ended(ended), err
}

// spawnFunc is a Spawner made of a function.
type spawnFunc func(ctx context.Context, c sandbox.Child) (sandbox.Ended, error)

func (f spawnFunc) Spawn(ctx context.Context, c sandbox.Child) (sandbox.Ended, error) {
	return f(ctx, c)
}
