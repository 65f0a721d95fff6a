package sandbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
)

// costlyRefusal is a refusal that took seconds to find, and would be the same the next time.
type costlyRefusal struct{ *admit.RefusedError }

func (e *costlyRefusal) Unwrap() error { return e.RefusedError }

// errChild is wrapped by errors of a child that are not the fault of the module.
var errChild = errors.New("the process that compiles failed")

// spawn runs a child that compiles the module whose code is in dir and writes the result into
// dir, and waits for its end. A module that exceeds a limit or crashes the child is refused.
func (s *Sandbox) spawn(ctx context.Context, mod *tool.Module, dir string, job childJob) error {
	s.sayMissing.Do(func() {
		if s.missingLimits != "" {
			s.opts.Logger.Warn("this system cannot limit all that compiling a module takes; its time is limited", "missing", s.missingLimits)
		}
	})
	limited, cancel := context.WithTimeout(ctx, job.wall)
	defer cancel()
	end, err := s.opts.Spawn(limited, dir, append([]string{ChildCommand}, job.args()...)...)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%w: %w", errChild, err)
	}
	code := -1 // a signal
	if end.Code != nil {
		code = *end.Code
	}
	switch message := printable(end.Stdout); {
	case code == childDone:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case code == childRefused:
		return &costlyRefusal{admit.Refuse(mod, "it does not compile: %s", message)}
	case code == childFailed:
		return fmt.Errorf("%w: %s", errChild, message)
	case limited.Err() != nil:
		// This is not a costlyRefusal: the machine may only have been busy.
		return admit.Refuse(mod, "it was not compiled: that took more than the limit of %s; try again when the machine has less to do", job.wall)
	}
	took := s.describeExcess(mod, job, code, end)
	return &costlyRefusal{admit.Refuse(mod, "it was not compiled: for its %d bytes that took %s; "+
		"if it is yours, split its largest functions; if not, do not trust it, and tell its author", mod.Bytes, took)}
}

// describeExcess describes the limit that a child has exceeded, or its crash, as the end of
// "that took". code is the child's exit code; -1: a signal has ended it.
func (s *Sandbox) describeExcess(mod *tool.Module, job childJob, code int, end services.CommandResult) string {
	switch {
	case outOfMemory(end.Stderr):
		return fmt.Sprintf("more than the limit of %d MiB of memory", job.memory>>20)
	case code == childTooLarge:
		return fmt.Sprintf("more than the limit of %d MiB of native code", job.file>>20)
	case code == childTooSlow, code < 0 && end.CPU > job.cpu/2: // the limit of Linux counts slightly more than this CPU time
		return fmt.Sprintf("more than the limit of %s of processor time", job.cpu)
	}
	how := printable(end.Stderr)
	switch {
	case how != "":
	case end.Signal != nil:
		how = fmt.Sprintf("signal %d", *end.Signal)
	default:
		how = fmt.Sprintf("exit code %d", code)
	}
	s.opts.Logger.Error("the process that compiles crashed", "module", mod.Name, "how", how)
	return "the compiler down (" + how + ")"
}

// outOfMemory reports whether stderr has a message of Go or libc about missing memory.
func outOfMemory(stderr []byte) bool {
	for _, message := range []string{"out of memory", "annot allocate", "failed to allocate", "pthread_create failed", "failed to create new OS thread"} {
		if strings.Contains(string(stderr), message) {
			return true
		}
	}
	return gcCrashPattern().Match(stderr)
}

// gcCrashPattern matches the crash of Go's collector when the system refuses it memory. The
// collector uses the nil that it got, on a stack of the runtime, where no code of a compiler
// runs.
var gcCrashPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^SIGSEGV: segmentation violation\nPC=\S+ m=\d+ sigcode=\d+ addr=0x0\n\ngoroutine 0 .*\nruntime\.`)
})

// printable returns the first line of a child's output, at most 300 bytes of it. The output
// may quote the module, so unprintable characters are replaced.
func printable(b []byte) string {
	const maxBytes = 300
	line := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, firstLine(toValidUTF8(b)))
	if len(line) > maxBytes {
		line = strings.ToValidUTF8(line[:maxBytes], "") + " ..."
	}
	return line
}
