package selftest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/selftest/machine"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// outputCases concern data from a guest to the host, and back.
func outputCases() []testCase {
	return []testCase{
		{id: "R15", title: "ten gigabytes to the standard streams", attacks: "stdout-flood stderr-flood", also: try(tenGigabytes)},
		{id: "R16", title: "a line of a gigabyte", also: try(oneLine)},
		{id: "R17", title: "results that are too large, nested, or no JSON", attacks: "result-100-mb result-structured-100-mb result-length-overflow result-text-outside result-outside result-at-the-end result-misaligned result-list-bomb result-list-overflow result-bad-variant result-bad-content result-bad-error json-broken json-not-a-number json-nested result-not-utf8 result-long error-long error-outside", also: try(oddResults),
			open: "a result that names a key twice goes to the model as it is: no part of the host decides on it"},
		{id: "R18", title: "arguments that are too large, nested, or no JSON", also: try(oddArguments)},
		{id: "R19", title: "a million messages", attacks: "log-flood log-long progress-flood", also: try(millionMessages),
			open: "that messages were dropped is said once, and not how many"},
		{id: "R21", title: "addresses and lengths that overflow", attacks: "wasi-pointers log-overflow log-length digest-outside exec-arguments-outside exec-arguments-bomb exec-argument-overflow result-pointer-outside result-pointer-overflow result-pointer-misaligned progress-variant log-level allocator-outside allocator-null"},
	}
}

// muchLimits are limits that let a guest write very much.
var muchLimits = policy.Limits{Fuel: 1 << 50, ToolFuel: 1 << 50, SessionFuel: 1 << 50, LogBytes: logLimit, Timeout: time.Minute}

// writes has a guest write a piece of the buffer many times, and checks how much is
// stored.
func (t *trial) writes(fd, pieces int, calls int) error {
	s := &script{}
	s.add("fill", machine.BufferBase, int('x'), machine.BufferSize)
	var words []uint32
	for range pieces {
		words = append(words, machine.BufferBase, machine.BufferSize)
	}
	write := s.add("fd_write", fd, s.words(words...).at, pieces, s.words(0).at)
	s.repeatWhileZero(write, calls-1)
	return requireFlatMemory(func() error {
		o, err := t.runScript(Guest{Limits: muchLimits}, s)
		if err != nil {
			return err
		}
		r, err := readReport(o.Result.Output)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %s", err, o.Result.Summary())
		case r.callCount(write) != calls || r.errno(write) != 0:
			return newUntried("%d of %d writes, %s", r.callCount(write), calls, r.errno(write))
		case o.Transcript.Bytes > logLimit+1024:
			return fmt.Errorf("%d bytes were kept", o.Transcript.Bytes)
		}
		return nil
	})
}

func tenGigabytes(t *trial) error {
	const pieces = 1024 // 64 MiB in one call
	return errors.Join(t.writes(1, pieces, 160), t.writes(2, pieces, 160))
}

func oneLine(t *trial) error { return t.writes(1, 1024, 16) }

// oddResults returns structured results that are well-formed for the ABI.
func oddResults(t *trial) error {
	object := func(n int, key func(i int) string) string {
		var b strings.Builder
		b.WriteByte('{')
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%q:0", key(i))
		}
		b.WriteByte('}')
		return b.String()
	}
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct {
		name, text string
		refused    bool
	}{
		{"a million keys", object(1_000_000, func(i int) string { return fmt.Sprint(i) }), false},
		{"the same key a thousand times", object(1000, func(int) string { return "k" }), false},
		{"nested a million deep", nested(1_000_000), true},
		{"nested a thousand deep", nested(1000), true},
		{"nested five hundred deep", nested(500), false},
		{"a number beyond every float", `{"a":1e999}`, false},
		{"no number", `{"a":NaN}`, true},
		{"not UTF-8", "{\"a\":\"\xff\xfe\"}", false},
		{"half a pair", `{"a":"\ud800"}`, false},
		{"two values", `{} {}`, true},
		{"a byte order mark", "\ufeff{}", true},
		{"nothing", "", false},
	} {
		module := w.Tool(w.ToolOptions{
			MemoryMin: 64 + len(c.text)/page, Data: []w.Segment{{Offset: machine.BufferBase, Bytes: []byte(c.text)}},
			Call: w.ReturnWords(w.ResultOK, 0, 0, 1, machine.BufferBase, uint32(len(c.text))),
		})
		run := func() error {
			o, err := t.run(Guest{Code: module, Limits: policy.Limits{OutputBytes: outputLimit}})
			switch {
			case err != nil:
				return err
			case !json.Valid(o.Result.Envelope()) || !utf8.Valid(o.Result.Envelope()):
				return errors.New("the model does not get JSON")
			case len(o.Result.Envelope()) > 2*outputLimit:
				return fmt.Errorf("%d bytes came through", len(o.Result.Envelope()))
			case c.refused && (o.Result.Err == nil || o.Result.Err.Code != tool.CodeBadABI):
				return fmt.Errorf("it is taken for a result: %.100s", o.Result.Output)
			case !c.refused && o.Result.Err != nil && o.Result.Err.Code != tool.CodeBadABI:
				return newUntried("something else stopped it: %s", o.Result.Summary())
			}
			return nil
		}
		err := run() // and compile it
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err = errors.Join(err, run())
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; err == nil && used > mostExtra {
			err = fmt.Errorf("the host allocates %d MiB", used>>20)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// oddArguments come from the model or a client. The guest must not get them.
func oddArguments(t *trial) error {
	for _, c := range []struct {
		name string
		args string
	}{
		{"a million keys", `{"asm":"` + strings.Repeat("00", 16) + `",` + strings.Repeat(`"k":0,`, 1_000_000) + `"z":0}`},
		{"a key twice", `{"command":"true","command":"rm -rf /"}`},
		{"a key twice further in", `{"a":{"b":1,"b":2}}`},
		{"a key twice, once escaped", `{"command":"true","\u0063ommand":"rm -rf /"}`},
		{"nested a million deep", `{"a":` + strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000) + `}`},
		{"nested a hundred deep", `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`},
		{"a number beyond every float", `{"a":1e999}`},
		{"no number", `{"a":NaN}`},
		{"two values", `{} {}`},
		{"cut off", `{"a":`},
		{"no object", `[1]`},
		{"text", `rm -rf /`},
		{"a hundred megabytes", `{"a":"` + strings.Repeat("x", 100<<20) + `"}`},
	} {
		err := func() error {
			o := t.target.Run(t.ctx, Guest{Code: machine.PlainModule(machine.Native), Args: json.RawMessage(c.args), Command: approvedCommand})
			switch {
			case o.Err != nil:
				return fmt.Errorf("it put the host at fault: %w", o.Err)
			case o.Result.Err == nil:
				return errors.New("they are taken for arguments")
			case o.Result.Usage.FuelUsed > 0:
				return errors.New("the guest ran")
			case len(o.Result.Err.Message) > 4<<10:
				return fmt.Errorf("the failure has %d bytes", len(o.Result.Err.Message))
			}
			return nil
		}()
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	// Arguments that are odd but have one meaning only reach the guest in one form.
	module := w.Tool(w.ToolOptions{Call: w.EchoArgs()})
	o, err := t.run(Guest{Code: module, Args: json.RawMessage("\t{ \"b\" : \"\\u0061\xff\" ,\n\"a\":9007199254740993}")})
	switch {
	case err != nil:
		return err
	case o.Result.Err != nil:
		return errors.New(o.Result.Summary())
	case !bytes.Contains(o.Result.Output, []byte(`9007199254740993`)) || !utf8.Valid(o.Result.Output) || bytes.Contains(o.Result.Output, []byte(`\t`)):
		return fmt.Errorf("the guest gets %s", o.Result.Output)
	}
	return nil
}

// millionMessages must not become a million events.
func millionMessages(t *trial) error {
	const messages = 1_000_000
	s := &script{}
	say := s.log("x")
	s.repeatWhileZero(say, messages-1)
	dropped := 0
	g := Guest{Limits: muchLimits, OnProgress: func(p tool.Progress) {
		if strings.Contains(p.Message, "dropped") {
			dropped++
		}
	}}
	g.Limits.HostCalls = 10 * messages
	return requireFlatMemory(func() error {
		o, err := t.runScript(g, s)
		if err != nil {
			return err
		}
		r, err := readReport(o.Result.Output)
		switch {
		case err != nil || r.callCount(say) != messages:
			return newUntried("the guest did not get to the end: %s", o.Result.Summary())
		case o.Transcript.Messages > logLimit/2+1:
			return fmt.Errorf("%d messages came through", o.Transcript.Messages)
		case dropped != 1:
			return fmt.Errorf("it is said %d times that some were dropped", dropped)
		}
		return nil
	})
}
