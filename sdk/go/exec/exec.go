// Package exec starts the one process that was approved for a call. Only a
// tool registered with tool.RunsCommand may do so, once a call, and only with
// the command that its argument holds.
//
// The process runs on the host with a fixed environment and empty stdin. The
// host applies its own limits when they are lower than those asked for.
package exec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

var (
	// ErrDenied is returned if the command is not the approved command, or if the call has
	// already run a command. It is fs.ErrPermission, too.
	ErrDenied = abi.Sentinel("command denied", fs.ErrPermission)
	// ErrNotFound is returned if the program or the directory does not exist. It is
	// fs.ErrNotExist, too.
	ErrNotFound = abi.Sentinel("command not found", fs.ErrNotExist)
	// ErrFailed is returned if the process could not be started or watched.
	ErrFailed = errors.New("command failed to run")
)

// Command is a process to start.
type Command struct {
	Argv []string // program and its arguments
	Dir  string   // working directory, absolute; empty: that of the call
	// Timeout is the time after which the host kills the process and its descendants, in whole
	// milliseconds. It can only lower the host's limit; 0 leaves that limit.
	Timeout time.Duration
	// MaxOutput limits the bytes that are returned of each stream; the rest is cut. It can
	// only lower the host's limit; 0 leaves that limit.
	MaxOutput   int
	MergeStderr bool // sends both streams to Stdout, in the order of the writes
}

// Outcome is the result of a process that was started.
type Outcome struct {
	ExitCode  int  // -1: the process did not exit by itself
	Signal    int  // number of the signal that killed the process; 0: none
	TimedOut  bool // set if the host killed the process at the time limit
	Stdout    []byte
	Stderr    []byte
	Truncated bool // set if a stream had more bytes than are returned
}

// Run starts a process and waits for its end. A command that fails by itself is no error: see
// [Outcome]. The deadline of ctx lowers a Timeout that is set.
func Run(ctx context.Context, cmd Command) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	var timeout int64 // milliseconds; 0: the host's limit
	if cmd.Timeout > 0 {
		if deadline, ok := ctx.Deadline(); ok {
			cmd.Timeout = min(cmd.Timeout, time.Until(deadline))
		}
		timeout = max(cmd.Timeout.Milliseconds(), 1)
	}

	var f abi.Frame
	defer f.Free()
	dirPtr, dirLen := f.Text(cmd.Dir)
	// result<outcome, error>: the case at 0; at 4 the outcome of 40 bytes, or
	// the error, whose case is at 4 and whose text is at 8.
	ret, r := f.Area(44)
	hostRun(f.Texts(cmd.Argv), uint32(len(cmd.Argv)), abi.Flag(cmd.Dir != ""), dirPtr, dirLen,
		clamp(timeout), clamp(int64(cmd.MaxOutput)), abi.Flag(cmd.MergeStderr), ret)
	if r.Bool(0) {
		return Outcome{}, errorOf(r)
	}
	out := Outcome{
		ExitCode:  -1,
		TimedOut:  r.Bool(20),
		Stdout:    r.Bytes(24),
		Stderr:    r.Bytes(32),
		Truncated: r.Bool(40),
	}
	if r.Bool(4) {
		out.ExitCode = int(int32(r.U32(8)))
	}
	if r.Bool(12) {
		out.Signal = int(int32(r.U32(16)))
	}
	return out, nil
}

func errorOf(r abi.Record) error {
	err := ErrFailed
	switch r.Case(4) {
	case 0:
		err = ErrDenied
	case 1:
		err = ErrNotFound
	}
	return fmt.Errorf("%w: %s", err, r.Text(8))
}

// clamp limits v to the range of a uint32.
func clamp(v int64) uint32 { return uint32(min(max(v, 0), math.MaxUint32)) }
