package hostmod

import (
	"errors"
	"path/filepath"
	"time"
)

const maxArgvBytes = 1 << 20

// execRun is exec.run.
//
// Parameters: argv (pointer, length), cwd (option: discriminant, pointer,
// length), timeout-ms, max-output, merge-stderr, result pointer.
//
// result<outcome, error>: discriminant; payload at 4. outcome: code at 4,
// signal at 12 (each option<s32>), timed-out at 20, stdout at 24, stderr at
// 32, truncated at 40; 44 bytes in all. error: discriminant at 4, text at 8.
func execRun(g *guest) error {
	const (
		size, payload, text          = 44, 4, 8
		caseDenied, caseNone, caseIO = 0, 1, 2
	)
	out := g.u32(8)
	fail := func(errorCase uint8, why string) error {
		return newRecord(size).fail(g, out, payload, text, errorCase, why)
	}
	cmd, err := g.liftCommand()
	if err != nil {
		return err
	}
	if why := g.denied(g.call != nil && g.call.Services.Exec != nil && g.call.Grant.MayExec(), "starting a process"); why != "" {
		return fail(caseDenied, why)
	}
	outcome, err := g.call.Services.Exec.Run(g.ctx, g.call.Grant, cmd)
	switch {
	case errors.Is(err, ErrDenied):
		return fail(caseDenied, err.Error())
	case errors.Is(err, ErrCommandNotFound):
		return fail(caseNone, err.Error())
	case err != nil:
		return fail(caseIO, err.Error())
	}
	if outcome.TimedOut {
		g.call.TimedOut = &outcome
	}
	r := newRecord(size)
	r.optS32(4, outcome.Code)
	r.optS32(12, outcome.Signal)
	r.bool(20, outcome.TimedOut)
	r.bool(40, outcome.Truncated)
	if err := r.bytes(g, 24, outcome.Stdout); err != nil {
		return err
	}
	if err := r.bytes(g, 32, outcome.Stderr); err != nil {
		return err
	}
	return r.put(g, out)
}

func (g *guest) liftCommand() (cmd Command, err error) {
	if cmd.Argv, err = g.mem.Strings("argv", g.u32(0), g.u32(1), maxArgvBytes); err != nil {
		return cmd, err
	}
	if g.call != nil {
		cmd.Dir = g.call.Cwd
	}
	if g.u32(2) != 0 {
		dir, err := g.mem.String("cwd", g.u32(3), g.u32(4), maxArgvBytes)
		if err != nil {
			return cmd, err
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(cmd.Dir, dir)
		}
		cmd.Dir = filepath.Clean(dir)
	}
	cmd.Timeout = time.Duration(g.u32(5)) * time.Millisecond
	cmd.MaxOutput = int(g.u32(6))
	cmd.MergeStderr = g.u32(7) != 0
	return cmd, nil
}
