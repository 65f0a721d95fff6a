package extism

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/dialect"
)

// plugin is a guest during one call, with the state that the host stores for it. It is used
// from one goroutine.
type plugin struct {
	*dialect.Guest
	*arena
	ctx context.Context // context of the call, for functions that take long

	input       span   // input of the call
	output      span   // output of the call, set by the plugin
	errorOffset uint64 // offset of the block with the error message; 0: the plugin has not failed

	vars     map[string][]byte // variables of var_set
	varBytes int               // size of vars in bytes, see maxVarBytes

	status  int               // HTTP status of the last response; 0: there is none
	headers map[string]string // headers of the last response, by their names in lower case

	owed uint64 // units of fuel for functions that were not charged yet
}

// span is a part of the memory.
type span struct{ offset, length uint64 }

type pluginKey struct{}

// pluginFrom returns the plugin of a call; nil: a plugin initialises.
func pluginFrom(ctx context.Context) *plugin {
	p, _ := ctx.Value(pluginKey{}).(*plugin)
	return p
}

// failure is an error that ends a plugin for a reason that the caller can understand.
type failure struct {
	kind abi.ErrorCase
	text string
}

func (f *failure) Error() string { return f.text }

// newPlugin makes a guest the plugin of a call. The caller has to end it.
func newPlugin(ctx context.Context, g *dialect.Guest) (*plugin, error) {
	memory, err := newArena(g.Limits.MemoryBytes, g.ReserveHostBytes)
	if err != nil {
		return nil, err
	}
	p := &plugin{Guest: g, arena: memory}
	p.ctx = context.WithValue(ctx, pluginKey{}, p)
	return p, nil
}

func (p *plugin) end() { p.release() }

// run calls an export with an input, and returns its output, without copying it. Exactly one
// of the three results is not nil.
func (p *plugin) run(export string, input []byte) ([]byte, *abi.ToolError, error) {
	offset, err := p.put(input)
	if err != nil {
		return nil, nil, err
	}
	p.input = span{offset, uint64(len(input))}
	out, err := p.Invoke(p.ctx, export)
	p.Account.Charge(p.owed)
	p.owed = 0
	code := 0
	if len(out) > 0 {
		code = int(api.DecodeI32(out[0]))
	}
	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		if code = int(exit.ExitCode()); code == 0 || p.failureText() != "" {
			err = p.Account.Settle() // as Invoke does if there is no error
		}
	}
	failed, ok := errors.AsType[*failure](err)
	switch {
	case ok && p.ctx.Err() == nil: // otherwise the call itself has ended
		return nil, &abi.ToolError{Case: failed.kind, Message: p.Redact.Text(failed.text)}, nil
	case err != nil:
		return nil, nil, err
	}
	text := p.failureText()
	if code == 0 && text == "" {
		result, err := p.result()
		return result, nil, err
	}
	e := &abi.ToolError{Case: abi.Failed, Message: text}
	if code != 0 {
		e.ExitCode = &code
	}
	if text == "" {
		e.Message = fmt.Sprintf("it ended with the code %d and did not say why", code)
		if result, err := p.result(); err == nil && utf8.Valid(result) {
			e.Stdout = abi.Head(result, maxFailure, p.Redact)
		}
	}
	return nil, e, nil
}

// maxFailure is the number of bytes after which the error message of a plugin is cut.
const maxFailure = 64 << 10

// failureText returns the plugin's error message, without secrets; "": it has not failed.
func (p *plugin) failureText() string {
	text, _ := p.view(p.errorOffset, p.length(p.errorOffset))
	return abi.Head(text, maxFailure, p.Redact)
}

// result returns the output without a copy; nil only with an error.
func (p *plugin) result() ([]byte, error) {
	if p.output.length == 0 {
		return []byte{}, nil
	}
	if p.output.length > abi.MaxResultBytes {
		return nil, fault("the output has %d bytes, more than the limit of %d", p.output.length, abi.MaxResultBytes)
	}
	out, ok := p.view(p.output.offset, p.output.length)
	if !ok { // the plugin has reset its memory since
		return nil, fault("the output lies outside of its memory")
	}
	return out, nil
}

// put copies data into a new block and returns its offset; 0: data is empty.
func (p *plugin) put(data []byte) (uint64, error) {
	offset, err := p.alloc(uint64(len(data)))
	if err == nil && offset != 0 {
		block, _ := p.view(offset, uint64(len(data)))
		copy(block, data)
	}
	return offset, err
}

// block returns the bytes of the block at an offset, without copying them. Offset 0, which
// alloc returns for 0 bytes, has none. If no block begins there, or if it has more than limit
// bytes, the error is a fault that calls the block what.
func (p *plugin) block(what string, offset uint64, limit int) ([]byte, error) {
	if offset == 0 {
		return nil, nil
	}
	i := p.find(offset)
	if i < 0 {
		return nil, fault("%s: no block of memory begins at the offset %#x%s", what, offset, initOffsetHint(offset))
	}
	n := p.blocks[i].used
	if uint64(n) > uint64(limit) {
		return nil, fault("%s: %d bytes, more than the limit of %d", what, n, limit)
	}
	b, _ := p.view(offset, uint64(n))
	p.owed += uint64(n) >> costBulkShift
	return b, nil
}

func fault(format string, args ...any) error { return &abi.Fault{What: fmt.Sprintf(format, args...)} }

// outside returns the fault of an access to n bytes at an offset, outside of the memory.
func (p *plugin) outside(offset, n uint64) error {
	return fault("%d bytes at the offset %#x lie outside of the %d bytes of its memory%s", n, offset, len(p.mem), initOffsetHint(offset))
}

// initOffsetHint explains an offset from the plugin's initialisation; "" for other offsets.
func initOffsetHint(offset uint64) string {
	if offset >= initOffset && offset-initOffset < 1<<30 {
		return "; it was allocated while the plugin initialised, and its content is gone"
	}
	return ""
}

// Costs of the functions, in units of fuel.
const (
	costTouch     = 60  // an access to the memory
	costAlloc     = 200 // allocating or freeing a block
	costCall      = 500 // any other function, as in package hostmod
	costBulkShift = 3   // as in package fuel

	maxOwed = 10_000 // units of debt at which owed is charged
)

// pay adds a cost to the debt, and charges the debt when it is large, see chargeOwed.
func (p *plugin) pay(cost uint64) error {
	if p.owed += cost; p.owed < maxOwed {
		return nil
	}
	return p.chargeOwed()
}

// chargeOwed charges the debt. The error means that the plugin has to stop: not every guest
// checks its counter between two host calls.
func (p *plugin) chargeOwed() error {
	p.Account.Charge(p.owed)
	p.owed = 0
	return p.Account.Check()
}

// The functions of the memory. stack holds the parameters, and receives the result.

func (p *plugin) allocate(stack []uint64) (err error) {
	had := cap(p.mem)
	if stack[0], err = p.alloc(stack[0]); err != nil {
		return err
	}
	cost := uint64(costAlloc)
	if cap(p.mem) > had {
		cost += uint64(cap(p.mem)) >> costBulkShift
	}
	return p.pay(cost)
}

func (p *plugin) free(stack []uint64) error {
	if stack[0] == p.input.offset {
		p.input.length = 0
	}
	p.freeBlock(stack[0])
	return p.pay(costAlloc)
}

// gets returns a function that returns a value of the plugin.
func gets(value func(*plugin) uint64) func(*plugin, []uint64) error {
	return func(p *plugin, stack []uint64) error {
		stack[0] = value(p)
		return p.pay(costTouch)
	}
}

func (p *plugin) lengthOf(stack []uint64) error {
	stack[0] = p.length(stack[0])
	return p.pay(costTouch)
}

// touches returns a function that reads or writes n bytes at the offset in stack[0].
func touches(n uint64, do func(b []byte, stack []uint64)) func(*plugin, []uint64) error {
	return func(p *plugin, stack []uint64) error {
		b, ok := p.view(stack[0], n)
		if !ok {
			return p.outside(stack[0], n)
		}
		do(b, stack)
		return p.pay(costTouch)
	}
}

// inputLoad8 returns 0 behind the input, because plugins read there before they ask for its
// length.
func (p *plugin) inputLoad8(stack []uint64) error {
	at := stack[0]
	stack[0] = 0
	if b, ok := p.view(p.input.offset+at, 1); ok && at < p.input.length {
		stack[0] = uint64(b[0])
	}
	return p.pay(costTouch)
}

// inputLoad64 returns zeros behind the input, too.
func (p *plugin) inputLoad64(stack []uint64) error {
	at := stack[0]
	stack[0] = 0
	if at < p.input.length {
		var eight [8]byte
		b, _ := p.view(p.input.offset+at, min(8, p.input.length-at))
		copy(eight[:], b)
		stack[0] = binary.LittleEndian.Uint64(eight[:])
	}
	return p.pay(costTouch)
}

func (p *plugin) setOutput(stack []uint64) error {
	offset, n := stack[0], stack[1]
	if _, ok := p.view(offset, n); !ok && n > 0 {
		return p.outside(offset, n)
	}
	p.output = span{offset, n}
	return p.pay(costTouch)
}

// setError makes the plugin fail: stack[0] is the offset of the block with the error message.
// With 0 the plugin has not failed. It is a fault if no block begins at the offset.
func (p *plugin) setError(stack []uint64) error {
	if stack[0] != 0 && p.find(stack[0]) < 0 {
		return fault("no block of memory begins at the offset %#x%s", stack[0], initOffsetHint(stack[0]))
	}
	p.errorOffset = stack[0]
	return p.pay(costTouch)
}

// startOver frees all blocks, also the input, and forgets output and error message.
func (p *plugin) startOver([]uint64) error {
	p.owed += uint64(len(p.mem)) >> costBulkShift
	p.reset()
	p.input, p.output, p.errorOffset = span{}, span{}, 0
	return p.pay(costAlloc)
}

// logLevel returns the lowest level that a plugin should log: info, because lower levels are
// shown only on request.
func (p *plugin) logLevel() uint64 {
	if p.Host != nil && p.Host.Report != nil {
		return 2
	}
	return logLevelOff
}

const logLevelOff = math.MaxInt32 // level of a log without readers
