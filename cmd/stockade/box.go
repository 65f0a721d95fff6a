package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/guests"
	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
)

// prebuilt returns the directory with the embedded native code of a module, by the module's
// digest; nil: there is none.
var prebuilt = guests.Native

// ownMemory is the part of the memory limit for this program without its tools, in bytes.
const ownMemory = 256 << 20

// limitMemory sets the soft memory limit of this process to the memory of the tools, in
// bytes, plus ownMemory. Near the limit, garbage is collected more often than GOGC asks
// for; nothing fails. A person's GOMEMLIMIT takes precedence. Memory that tools have
// mapped has its own limit.
func limitMemory(s *stdio, tools uint64) {
	if s.env("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(tools + ownMemory))
	}
}

// sandboxOptions sets the memory limit of this process, and returns the options of its
// sandbox. Unless --quiet or compilingForReview is set, a note is shown while a module is
// compiled, because that takes a second or more, once per module.
func (a *app) sandboxOptions() sandbox.Options {
	limitMemory(a.s, uint64(a.Config.ToolMemoryTotal))
	return sandbox.Options{
		CacheDir: a.Dirs.Compiled(), MemoryBytes: uint64(a.Config.ToolMemoryTotal),
		Prebuilt: prebuilt, Spawn: jail.RunHelper, AllowLarge: a.flags.large,
		OnCompile: func(m *tool.Module) {
			if !a.flags.quiet && !a.compilingForReview.Load() {
				a.s.note("compiling %s (%s), once ...", m.Name, humanize.Bytes(m.Bytes))
			}
		},
		OnCompiled: func(m *tool.Module, d time.Duration, err error) {
			if !a.flags.quiet && !a.compilingForReview.Load() && err == nil && d > time.Second {
				a.s.note("compiled %s in %.1f s", m.Name, d.Seconds())
			}
		},
	}
}

// loadAhead loads a compiled module that will be called soon, while the rest is prepared. A
// module without compiled code is compiled only once the call is allowed.
func (a *app) loadAhead(ctx context.Context, mod *tool.Module) {
	if box := a.door().Sandbox(); box.Ready(mod) {
		go func() { _ = box.Compile(ctx, mod) }() // the call reports an error
	}
}

// logger returns a logger that prints warnings for operators like all other notes.
func (a *app) logger() *slog.Logger { return slog.New(noteHandler{a.s}) }

// noteHandler is a log handler that prints warnings and errors as notes.
type noteHandler struct{ s *stdio }

// Enabled implements slog.Handler.
func (noteHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle implements slog.Handler.
func (n noteHandler) Handle(_ context.Context, r slog.Record) error {
	text := "warning: " + r.Message
	r.Attrs(func(attr slog.Attr) bool {
		text += fmt.Sprintf(", %s %v", attr.Key, attr.Value)
		return true
	})
	n.s.note("%s", text)
	return nil
}

// WithAttrs implements slog.Handler; this program derives no loggers.
func (n noteHandler) WithAttrs([]slog.Attr) slog.Handler { return n }

// WithGroup implements slog.Handler.
func (n noteHandler) WithGroup(string) slog.Handler { return n }
