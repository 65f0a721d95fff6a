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

// plugin is a guest during one call, with what its host keeps for it. It is used from
// one goroutine.
type plugin struct {
	*dialect.Guest
	*arena
	ctx context.Context // of the call, for what takes long

	input       span
	output      span
	errorOffset uint64 // the offset of what it says about its failure; 0: it has not failed

	vars     map[string][]byte
	varBytes int

	status  int               // of the last answer
	headers map[string]string // of the last answer, by their names in lower case

	owed uint64 // fuel that was not charged yet
}

// span is a piece of the memory.
type span struct{ offset, length uint64 }

type pluginKey struct{}

// pluginFrom returns the plugin of a call, or nil.
func pluginFrom(ctx context.Context) *plugin {
	p, _ := ctx.Value(pluginKey{}).(*plugin)
	return p
}

// failure ends a plugin for a reason that the caller of its tool can understand.
type failure struct {
	kind abi.ErrorCase
	text string
}

func (f *failure) Error() string { return f.text }

// newPlugin makes a guest the plugin of a call, which has to be ended.
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

// run calls an export with an input, and returns its output, which stays the
// plugin's. Exactly one of its results is not nil.
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
			err = p.Account.Settle() // what Invoke does where there is no error
		}
	}
	failed, ok := errors.AsType[*failure](err)
	switch {
	case ok && p.ctx.Err() == nil: // else the call has ended, and with it what the plugin waited for
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

// maxFailure is how much is kept of what a plugin says about its failure, in bytes.
const maxFailure = 64 << 10

// failureText is what the plugin says about its failure; empty: it has not failed.
func (p *plugin) failureText() string {
	text, _ := p.view(p.errorOffset, p.length(p.errorOffset))
	return abi.Head(text, maxFailure, p.Redact)
}

// result is the output. It is never nil without an error.
func (p *plugin) result() ([]byte, error) {
	if p.output.length == 0 {
		return []byte{}, nil
	}
	if p.output.length > abi.MaxResultBytes {
		return nil, fault("the output has %d bytes, more than the limit of %d", p.output.length, abi.MaxResultBytes)
	}
	out, ok := p.view(p.output.offset, p.output.length)
	if !ok { // it has reset its memory since
		return nil, fault("the output lies outside of its memory")
	}
	return out, nil
}

// put copies data into a new block and returns its offset; 0 where there is none.
func (p *plugin) put(data []byte) (uint64, error) {
	offset, err := p.alloc(uint64(len(data)))
	if err == nil && offset != 0 {
		block, _ := p.view(offset, uint64(len(data)))
		copy(block, data)
	}
	return offset, err
}

// block returns the bytes of a block, which stay the plugin's. At the offset 0 there is
// an empty one: what a plugin gets that asks for no bytes.
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

// outside is the fault of an access that is not in the memory.
func (p *plugin) outside(offset, n uint64) error {
	return fault("%d bytes at the offset %#x lie outside of the %d bytes of its memory%s", n, offset, len(p.mem), initOffsetHint(offset))
}

// initOffsetHint says where an offset comes from that was given out before the call.
func initOffsetHint(offset uint64) string {
	if offset >= initOffset && offset-initOffset < 1<<30 {
		return "; it was given out while the plugin initialised, and what was there is gone"
	}
	return ""
}

// What functions cost, in units of fuel.
const (
	costTouch     = 60  // a look at the memory
	costAlloc     = 200 // a block more or less
	costCall      = 500 // everything else, as in package hostmod
	costBulkShift = 3   // as in package fuel

	// maxOwed is from when on what is owed is charged.
	maxOwed = 10_000
)

// pay charges what a function costs, from time to time.
func (p *plugin) pay(cost uint64) error {
	if p.owed += cost; p.owed < maxOwed {
		return nil
	}
	return p.chargeOwed()
}

// chargeOwed charges what is owed, and says why the plugin has to end, if it has to: not
// every guest looks at its counter between two calls of the host.
func (p *plugin) chargeOwed() error {
	p.Account.Charge(p.owed)
	p.owed = 0
	return p.Account.Check()
}

// The functions of the memory. A stack holds parameters, and takes the result.

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

func (p *plugin) lengthOf(stack []uint64) error {
	stack[0] = p.length(stack[0])
	return p.pay(costTouch)
}

func (p *plugin) load8(stack []uint64) error {
	at := stack[0] - firstOffset
	if at >= uint64(len(p.mem)) {
		return p.outside(stack[0], 1)
	}
	stack[0] = uint64(p.mem[at])
	return p.pay(costTouch)
}

func (p *plugin) load64(stack []uint64) error {
	b, ok := p.view(stack[0], 8)
	if !ok {
		return p.outside(stack[0], 8)
	}
	stack[0] = binary.LittleEndian.Uint64(b)
	return p.pay(costTouch)
}

func (p *plugin) store8(stack []uint64) error {
	at := stack[0] - firstOffset
	if at >= uint64(len(p.mem)) {
		return p.outside(stack[0], 1)
	}
	p.mem[at] = byte(stack[1])
	return p.pay(costTouch)
}

func (p *plugin) store64(stack []uint64) error {
	b, ok := p.view(stack[0], 8)
	if !ok {
		return p.outside(stack[0], 8)
	}
	binary.LittleEndian.PutUint64(b, stack[1])
	return p.pay(costTouch)
}

// inputLoad8 reads 0 behind the input, as plugins look there before they ask how long
// it is.
func (p *plugin) inputLoad8(stack []uint64) error {
	at := stack[0]
	stack[0] = 0
	if b, ok := p.view(p.input.offset+at, 1); ok && at < p.input.length {
		stack[0] = uint64(b[0])
	}
	return p.pay(costTouch)
}

// inputLoad64 reads zeros behind the input too.
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

func (p *plugin) inputLength(stack []uint64) error {
	stack[0] = p.input.length
	return p.pay(costTouch)
}

func (p *plugin) inputOffset(stack []uint64) error {
	stack[0] = p.input.offset
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

func (p *plugin) outputLength(stack []uint64) error {
	stack[0] = p.output.length
	return p.pay(costTouch)
}

func (p *plugin) outputOffset(stack []uint64) error {
	stack[0] = p.output.offset
	return p.pay(costTouch)
}

// setError takes the offset of a block, or 0: there is no failure after all.
func (p *plugin) setError(stack []uint64) error {
	if stack[0] != 0 && p.find(stack[0]) < 0 {
		return fault("no block of memory begins at the offset %#x%s", stack[0], initOffsetHint(stack[0]))
	}
	p.errorOffset = stack[0]
	return p.pay(costTouch)
}

func (p *plugin) getError(stack []uint64) error {
	stack[0] = p.errorOffset
	return p.pay(costTouch)
}

// startOver takes back all blocks, that of the input too.
func (p *plugin) startOver([]uint64) error {
	p.owed += uint64(len(p.mem)) >> costBulkShift
	p.reset()
	p.input, p.output, p.errorOffset = span{}, span{}, 0
	return p.pay(costAlloc)
}

func (p *plugin) memoryBytes(stack []uint64) error {
	stack[0] = uint64(cap(p.mem))
	return p.pay(costTouch)
}

// logLevel is the least level that is worth logging: info, as below that nobody looks
// without having asked for it.
func (p *plugin) logLevel(stack []uint64) error {
	stack[0] = logLevelOff
	if p.Host != nil && p.Host.Report != nil {
		stack[0] = 2
	}
	return p.pay(costTouch)
}

const logLevelOff = math.MaxInt32 // the level of a log that nobody reads
