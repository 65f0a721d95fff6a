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

// call runs a granted call on an instance without the state of earlier calls. set receives its
// changes; nil: the guest may not write. report receives its progress; nil: nobody listens.
// hostErr is an error that is not the guest's fault, see Run.
func (s *Sandbox) call(ctx context.Context, c *compiledModule, mod *tool.Module, grant policy.Grant, set *stage.Set, call tool.Call, report func(tool.Progress)) (result tool.Result, hostErr error) {
	start := time.Now() // the call does not pay for compiling and initialising, which happen once
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
		// Only a panic of the host gets here with a search that still runs.
		hostErr = errors.Join(hostErr, host.End(inst.account.Charge), inst.end(&c.pool, s.opts.VerifyReset))
		s.watchIdle()
	}()
	var (
		out     *abi.Output
		toolErr *abi.ToolError
		printed string
	)
	if err == nil {
		unprefixed := call
		unprefixed.Tool = mod.UnprefixedName(call.Tool)
		guest := s.guest(inst, c, host)
		out, toolErr, err = c.dialect.Call(inst.context(hostmod.WithWorld(ctx, host)), guest, unprefixed)
		inst.returned, printed = err == nil, guest.Printed
		for name, executable := range grant.Modes() {
			if errno := inst.files.SetExecutable(paths.Guest(paths.Absolute(name, call.Cwd)), executable); errno != 0 && err == nil && toolErr == nil {
				toolErr = &abi.ToolError{Case: abi.IO, Message: fmt.Sprintf("the mode of %s cannot be set: %v", name, errno)}
			}
		}
		hostErr = host.End(inst.account.Charge)
	}
	if report != nil {
		if printed := inst.output.text(); printed != "" {
			report(tool.Progress{Level: "debug", Message: printed})
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

// config returns a function that looks up a setting of a module; false: the module does not
// declare the name. The snapshot holds no settings. A built-in module may append lines to a
// name, as arguments for Options.Config.
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

// maxResultDepth limits the nesting of a result; a deeper one is invalid output of the tool.
// Readers of the log have limits as well, some of them at 512.
const maxResultDepth = 500

// nests reports whether JSON nests deeper than limit levels.
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

// toolImages returns the images of a result, and a note about images left out; "": none.
func toolImages(out *abi.Output) (images []tool.Image, note string) {
	const named = 3 // number of left out images whose reason the note gives
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

var errTooManyImages = errors.New("it is empty or too large, or the result has too many images")

// toolOutput returns the output of a tool as one JSON object. wrong is the end of a sentence
// about invalid output; "": it is valid.
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
