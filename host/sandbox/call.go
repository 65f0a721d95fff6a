package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/host/tool"
)

// call runs a granted call on a fresh instance.
func (s *Sandbox) call(ctx context.Context, c *compiledModule, mod *tool.Module, grant policy.Grant, set *stage.Set, call tool.Call, report func(tool.Progress)) (result tool.Result, hostErr error) {
	start := time.Now() // compiling and initialising, which happen once, are not the call's cost
	limits := grant.Limits()
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Timeout, errTimeout)
	defer cancel()

	host := &hostmod.World{Grant: grant, Cwd: call.Cwd, Services: s.opts.Services, Config: s.config(mod), Redact: s.opts.Redact, Report: report,
		Terminal: mod.Origin == tool.OriginBuiltin}
	if grant.MayExec() {
		host.Stage = set
	}
	inst, err := s.open(ctx, c, grant, limits, set)
	host.Files = inst.files
	defer func() {
		// The query has ended by now, except in a panic of ours.
		hostErr = errors.Join(hostErr, host.End(inst.account.Charge), inst.end(&c.pool, s.opts.VerifyReset))
		s.watchIdle()
	}()
	var (
		out     *abi.Output
		toolErr *abi.ToolError
		printed string
	)
	if err == nil {
		own := call
		own.Tool = mod.UnprefixedName(call.Tool)
		guest := s.guest(inst, c, host)
		out, toolErr, err = c.dialect.Call(inst.context(hostmod.WithWorld(ctx, host)), guest, own)
		inst.returned, printed = err == nil, guest.Printed
		for name, executable := range grant.Modes() {
			if errno := inst.files.SetExecutable(paths.Guest(paths.Absolute(name, call.Cwd)), executable); errno != 0 && err == nil && toolErr == nil {
				toolErr = &abi.ToolError{Case: abi.IO, Message: fmt.Sprintf("the mode of %s cannot be set: %v", name, errno)}
			}
		}
		hostErr = host.End(inst.account.Charge)
	}
	if report != nil {
		if said := inst.output.text(); said != "" {
			report(tool.Progress{Level: "debug", Message: said})
		}
	}
	if _, ok := errors.AsType[runtime.Error](err); ok {
		s.opts.Logger.Error("the engine failed", "tool", call.Tool, "call", call.ID, "err", err)
	}
	result, err = judge(callOutcome{
		ctx: ctx, call: call, limits: limits, inst: inst, host: host, redact: s.opts.Redact,
		printed: printed, out: out, toolErr: toolErr, err: err,
	})
	hostErr = errors.Join(hostErr, err)
	if inst.files != nil {
		result = addRefusals(result, toolErr != nil, inst.files.Refusals())
	}
	if host.HistoryErr != nil {
		hostErr = errors.Join(hostErr, host.HistoryErr)
	}
	for _, note := range host.Notes {
		result.AddNote(note)
	}
	result.RawOutput = toValidUTF8(host.RawOutput)
	result.Usage.Start = start
	result.Usage.Duration = time.Since(start)
	result.Usage.Network = grant.Traffic()
	result.Usage.FuelUsed = inst.account.Used()
	if inst.memory != nil {
		result.Usage.PeakMemoryBytes = inst.memory.peak + inst.memory.hostBytes
	}
	return result, hostErr
}

// config returns a function that looks up the configuration of a module. The snapshot that
// calls begin with has none of it. A built-in module can ask for more in lines behind a name.
func (s *Sandbox) config(mod *tool.Module) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		key := name
		if mod.Origin == tool.OriginBuiltin {
			key, _, _ = strings.Cut(name, "\n")
		}
		value, declared := mod.Config[key]
		if declared && mod.Origin == tool.OriginBuiltin && s.opts.Config != nil {
			if set, ok := s.opts.Config(mod.Name, name); ok {
				value = set
			}
		}
		return value, declared
	}
}

// maxResultDepth is how deep a result may nest. Whoever reads the log has a limit
// too, and some of theirs are at 512.
const maxResultDepth = 500

// nests reports whether JSON nests deeper than so many levels.
func nests(data []byte, limit int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted:
			if c == '\\' {
				i++
			}
			quoted = c != '"'
		case c == '"':
			quoted = true
		case c == '{', c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return false
}

// toolImages are the images that a tool returned, and a note about those that nobody
// will see.
func toolImages(out *abi.Output) (images []tool.Image, note string) {
	const named = 3 // that were left out, of which the note says why
	var notes []string
	n, left := 0, 0
	for _, c := range out.Content {
		if c.Kind != abi.ContentImage {
			continue
		}
		n++
		err := errTooManyImages
		if c.Data != nil {
			var img tool.Image
			if img, err = tool.NewImage(c.Mime, c.Data); err == nil {
				images = append(images, img)
				continue
			}
		}
		if left++; left <= named {
			notes = append(notes, fmt.Sprintf("image %d of the result was left out: %v", n, err))
		}
	}
	if left > named {
		notes = append(notes, fmt.Sprintf("and so were %d more", left-named))
	}
	return images, strings.Join(notes, "\n")
}

var errTooManyImages = errors.New("it is empty, or larger or one more than one result may have")

// toolOutput makes one JSON object of what a tool returned, or says what is wrong
// with that.
func toolOutput(out *abi.Output) (raw json.RawMessage, wrong string) {
	if out.Structured != "" {
		raw := json.RawMessage(out.Structured)
		switch {
		case nests(raw, maxResultDepth):
			return nil, fmt.Sprintf("nests deeper than %d levels", maxResultDepth)
		case !json.Valid(raw):
			return nil, "is not valid JSON"
		}
		if !bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
			raw = append(append([]byte(`{"output":`), raw...), '}')
		}
		return raw, ""
	}
	var text []string
	for _, c := range out.Content {
		switch c.Kind {
		case abi.ContentImage:
			what := c.Mime
			if img, err := tool.NewImage(c.Mime, c.Data); err == nil {
				what = img.String()
			}
			text = append(text, "[image "+what+"]")
		case abi.ContentResource:
			text = append(text, strings.TrimSpace(c.Title+" "+c.Text))
		default:
			text = append(text, c.Text)
		}
	}
	return tool.Text(strings.Join(text, "\n")), ""
}
