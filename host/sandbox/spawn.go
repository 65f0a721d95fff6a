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

// costlyRefusal is a refusal that was dear to find out, and would be the same again.
type costlyRefusal struct{ *admit.RefusedError }

func (e *costlyRefusal) Unwrap() error { return e.RefusedError }

// errChild is wrapped when a child could not do its work, which is no fault of
// the module's.
var errChild = errors.New("the process that compiles failed")

// spawn has a child compile the module that lies in dir, into dir.
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
	switch said := printable(end.Stdout); {
	case code == childDone:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case code == childRefused:
		return &costlyRefusal{admit.Refuse(mod, "it does not compile: %s", said)}
	case code == childFailed:
		return fmt.Errorf("%w: %s", errChild, said)
	case limited.Err() != nil:
		// Not for good: the machine may only have been busy.
		return admit.Refuse(mod, "it was not compiled: that took more than the limit of %s; try again when the machine has less to do", job.wall)
	}
	took := s.describeExcess(mod, job, code, end)
	return &costlyRefusal{admit.Refuse(mod, "it was not compiled: for its %d bytes that took %s; "+
		"if it is yours, split its largest functions; if not, do not trust it, and tell its author", mod.Bytes, took)}
}

// describeExcess says what a child has used up, or that it has crashed.
func (s *Sandbox) describeExcess(mod *tool.Module, job childJob, code int, end services.CommandResult) string {
	switch {
	case outOfMemory(end.Stderr):
		return fmt.Sprintf("more than the limit of %d MiB of memory", job.memory>>20)
	case code == childTooLarge:
		return fmt.Sprintf("more than the limit of %d MiB of native code", job.file>>20)
	case code == childTooSlow, code < 0 && end.CPU > job.cpu/2: // which is not quite what Linux holds against the limit
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

// outOfMemory reports whether this is what Go, or its C library, says when the
// system gives it no more memory.
func outOfMemory(stderr []byte) bool {
	for _, says := range []string{"out of memory", "annot allocate", "failed to allocate", "pthread_create failed", "failed to create new OS thread"} {
		if strings.Contains(string(stderr), says) {
			return true
		}
	}
	return gcCrashPattern().Match(stderr)
}

// gcCrashPattern matches how Go's collector ends when the system refuses
// it memory: it uses the nil that it got, on a stack of the runtime's own, where
// no code of a compiler runs.
var gcCrashPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^SIGSEGV: segmentation violation\nPC=\S+ m=\d+ sigcode=\d+ addr=0x0\n\ngoroutine 0 .*\nruntime\.`)
})

// printable is the first line of what a child said, which may quote the
// module, without anything that a terminal would not show.
func printable(b []byte) string {
	const most = 300
	line := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, firstLine(toValidUTF8(b)))
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + " ..."
	}
	return line
}
