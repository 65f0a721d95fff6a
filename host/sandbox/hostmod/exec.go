package hostmod

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
)

const maxArgvBytes = 1 << 20 // bytes of all arguments, and of cwd; more are an [abi.Fault]

var execResult = layout{size: 44, align: 4, payload: 4, errorText: 8} // of a result<outcome, error>

// Offsets of the fields of outcome in execResult.
const (
	execCode      = 4
	execSignal    = 12
	execTimedOut  = 20
	execStdout    = 24
	execStderr    = 32
	execTruncated = 40
)

// The cases of the variant error of exec, see wit/.
const (
	execDenied uint8 = iota
	execNotFound
	execFailed
)

var execCases = map[services.Kind]uint8{services.Denied: execDenied, services.NotFound: execNotFound}

// execRun is exec.run. Parameters: argv (pointer, length), cwd (option: discriminant, pointer,
// length), timeout-ms, max-output, merge-stderr, result pointer.
func execRun(c reply) error {
	cmd, err := c.liftCommand()
	if err != nil {
		return err
	}
	w := c.world
	if why := w.whyDenied(w != nil && w.Services.Exec != nil && w.Grant.MayExec(), "starting a process"); why != "" {
		return refusal{execDenied, why}
	}
	cmd.Stage, cmd.RenderTerminal = w.Stage, w.Terminal
	if report := w.Report; report != nil {
		cmd.OnOutput = func(text string) { report(tool.Progress{Output: text}) }
	}
	var ended services.CommandResult
	c.account.WithoutTurn(func() { ended, err = w.Services.Exec.Run(c.ctx, w.Grant, cmd) })
	if err != nil {
		if h, unknown := errors.AsType[*policy.HistoryError](err); unknown {
			w.HistoryErr = h
		}
		errorCase, ok := execCases[services.KindOf(err)]
		if !ok {
			errorCase = execFailed
		}
		return refusal{errorCase, err.Error()}
	}
	w.Notes, w.RawOutput = append(w.Notes, ended.Notes...), ended.RawOutput
	if ended.TimedOut {
		w.TimedOut = &ended
	}
	r := c.record()
	r.optS32(execCode, ended.Code)
	r.optS32(execSignal, ended.Signal)
	r.bool(execTimedOut, ended.TimedOut)
	r.bool(execTruncated, ended.Truncated)
	r.bytes(c.guest, execStdout, ended.Stdout)
	r.bytes(c.guest, execStderr, ended.Stderr)
	return c.put(r)
}

func (g *guest) liftCommand() (cmd services.Command, err error) {
	if cmd.Argv, err = g.mem.Strings("argv", g.u32(0), g.u32(1), maxArgvBytes); err != nil {
		return cmd, err
	}
	if g.world != nil {
		cmd.Dir = g.world.Cwd
	}
	if g.option("cwd", 2) {
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
	return cmd, g.err
}
