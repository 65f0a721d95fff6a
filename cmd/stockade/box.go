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

// prebuilt is the native code that this program was built with.
var prebuilt = guests.Native

// ownMemory is the memory of this program itself, beside that of the tools, in bytes.
const ownMemory = 256 << 20

// limitMemory limits the memory of this process to that of the tools, in bytes, and its own.
// Near the limit garbage is collected more often than GOGC says; nothing fails. A person's
// GOMEMLIMIT counts instead. Memory that tools have mapped has a limit of its own.
func limitMemory(s *stdio, tools uint64) {
	if s.env("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(tools + ownMemory))
	}
}

// sandboxOptions are those of this program. Compiling is shown, because it takes a
// second or more for each module, once.
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

// loadAhead loads a module that is about to be called, while the rest is made
// ready. One that has to be compiled first waits for the call to be allowed.
func (a *app) loadAhead(ctx context.Context, mod *tool.Module) {
	if box := a.door().Sandbox(); box.Ready(mod) {
		go func() { _ = box.Compile(ctx, mod) }() // the call says what is wrong
	}
}

// logger shows what operators want to know in the form of every other note.
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

// WithAttrs implements slog.Handler; nothing here derives loggers.
func (n noteHandler) WithAttrs([]slog.Attr) slog.Handler { return n }

// WithGroup implements slog.Handler.
func (n noteHandler) WithGroup(string) slog.Handler { return n }
