package selftest

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/selftest/machine"
)

// script is what the machine is to do. Its methods add calls; every value that
// they return is known before the machine runs, and is good for an operand.
type script struct {
	data  []byte // from machine.ImageBase+4 on
	calls []*call
	out   uint32 // how much of the report is taken, beyond the results
}

func le64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// call is one call of a function of the machine.
type call struct {
	function string
	operands []any // int, int64, uint32, uint64, cell, *call
	at       uint32
	result   uint32 // where its result lies in the report

	// What it is for: the names of what it has to return, of which one has to
	// come; "ok" is no error, "refused" any that is a refusal. Empty is anything.
	name, want string
}

// cell is an operand that the machine loads from this address.
type cell uint32

// span is some bytes in the memory of the machine.
type span struct{ at, n uint32 }

// bytes puts bytes into the memory.
func (s *script) bytes(b []byte) span {
	for len(s.data)%8 != 4 { // behind the address of the first call
		s.data = append(s.data, 0)
	}
	at := machine.ImageBase + 4 + uint32(len(s.data))
	s.data = append(s.data, b...)
	return span{at, uint32(len(b))}
}

func (s *script) text(t string) span { return s.bytes([]byte(t)) }

// words puts 32-bit numbers into the memory.
func (s *script) words(v ...uint32) span { return s.bytes(le32(v...)) }

func le32(words ...uint32) []byte {
	var out []byte
	for _, v := range words {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	return out
}

// reserve takes n bytes of the report, which are zero until a call writes there.
func (s *script) reserve(n int) span {
	r := span{machine.ReportBase + machine.ResultsEnd + s.out, uint32(n)}
	s.out += uint32(n+7) &^ 7
	if s.out > machine.ReportSize-machine.ResultsEnd {
		panic("selftest: the script leaves too much in the report")
	}
	return r
}

// add adds a call of a function, by its name.
func (s *script) add(function string, operands ...any) *call {
	if n, ok := machine.OperandCounts()[function]; !ok || n != len(operands) {
		panic(fmt.Sprintf("selftest: %s with %d operands", function, len(operands)))
	}
	c := &call{function: function, operands: operands, name: function, result: machine.ReportBase + uint32(len(s.calls)*machine.ResultSize)}
	s.calls = append(s.calls, c)
	if len(s.calls)*machine.ResultSize > machine.ResultsEnd {
		panic("selftest: the script has too many calls")
	}
	return c
}

// repeatWhileZero repeats what was added from a call on, up to so many times, while the
// call before it returns zero.
func (s *script) repeatWhileZero(from *call, times int) *call { return s.add("again", from, times) }

// repeat repeats what was added from a call on, so many times.
func (s *script) repeat(from *call, times int) *call { return s.add("always", from, times) }

// expect says what the call has to return. Unless that may be "ok", it is the
// attack.
func (c *call) expect(name, want string) *call { c.name, c.want = name, want; return c }

// mustSucceed says that the attack cannot be carried out unless the call succeeds.
func (c *call) mustSucceed(name string) *call { return c.expect(name, "ok") }

// mustBeRefused says that the attack is this call, which has to be refused. The
// errors in also are refusals too, which elsewhere speak of a mistake in the
// script.
func (c *call) mustBeRefused(name string, also ...string) *call {
	return c.expect(name, strings.Join(append(also, "refused"), " "))
}

// arguments are those of the call that carries out the script. The command is
// not given if it is empty.
func (s *script) arguments(command string) json.RawMessage {
	args := map[string]string{machine.ScriptArgument: hex.EncodeToString(s.image())}
	if command != "" {
		args["command"] = command
	}
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err) // strings always encode
	}
	return raw
}

func (s *script) image() []byte {
	first := s.bytes(nil).at
	at := first
	for _, c := range s.calls {
		c.at = at
		at += uint32(machine.OpSize + len(c.operands)*machine.OperandSize)
	}
	image := append(le32(first), s.data...)
	for _, c := range s.calls {
		image = append(image, le32(uint32(machine.FunctionNumbers()[c.function]), c.result, uint32(machine.OpSize+len(c.operands)*machine.OperandSize), 0)...)
		for _, o := range c.operands {
			kind, value := machine.Immediate, uint64(0)
			switch o := o.(type) {
			case int:
				value = uint64(o)
			case int64:
				value = uint64(o)
			case uint32:
				value = uint64(o)
			case uint64:
				value = o
			case cell:
				kind, value = machine.Indirect, uint64(o)
			case *call:
				value = uint64(o.at)
			default:
				panic(fmt.Sprintf("selftest: %s has an operand of type %T", c.function, o))
			}
			image = append(image, le32(uint32(kind), 0)...)
			image = binary.LittleEndian.AppendUint64(image, value)
		}
	}
	image = append(image, le32(0)...) // the end
	if len(image) > machine.ImageBytes {
		panic("selftest: the script is too large")
	}
	return image
}

// notRefusals are the error numbers that say something of the attempt rather than
// of a refusal.
var notRefusals = []wasi.Errno{wasi.EBADF, wasi.EFAULT, wasi.ENOSYS}

// report is what the machine has left.
type report []byte

var errNoReport = errors.New("it is no report of the machine")

// readReport finds the report in the output of a call.
func readReport(output json.RawMessage) (report, error) {
	var out struct {
		Output string `json:"output"`
	}
	// What a described command prints is text.
	for range 2 {
		if err := json.Unmarshal(output, &out); err != nil {
			return nil, errNoReport
		}
		if output = json.RawMessage(out.Output); !strings.HasPrefix(out.Output, "{") {
			break
		}
	}
	r, err := hex.DecodeString(out.Output)
	if err != nil || len(r) != machine.ReportSize {
		return nil, errNoReport
	}
	return r, nil
}

func (r report) u32(at uint32) uint32 { return binary.LittleEndian.Uint32(r[at-machine.ReportBase:]) }

func (r report) span(s span) []byte { return r[s.at-machine.ReportBase:][:s.n] }

// resultOf is what a call returned the last time.
func (r report) resultOf(c *call) uint32 { return r.u32(c.result) }

// errno is returned as an error number.
func (r report) errno(c *call) wasi.Errno { return wasi.Errno(min(r.resultOf(c), math.MaxUint16)) }

// callCount is how often a call was made.
func (r report) callCount(c *call) int { return int(r.u32(c.result + 4)) }

// check looks whether all that was to be done was done, and all that was to be
// refused was. It returns the numbers of the refusals.
func (r report) check(s *script) ([]wasi.Errno, error) { return r.compare(s, false) }

// compare is check; where it is to be exact, another refusal than the script
// wants is an error, too. That is for tests: systems differ in their numbers.
func (r report) compare(s *script, exact bool) (refusals []wasi.Errno, err error) {
	var wrong, untried error
	for _, c := range s.calls {
		e, names := r.errno(c), strings.Fields(c.want)
		attack := !slices.Contains(names, "ok")
		switch {
		case len(names) == 0:
		case r.callCount(c) == 0:
			untried = cmp.Or(untried, newUntried("the guest did not get as far as: %s", c.name))
		case e == 0 && attack:
			wrong = errors.Join(wrong, fmt.Errorf("it worked: %s", c.name))
		case e == 0:
		case exact && !slices.Contains(names, "refused") && !slices.Contains(names, e.String()):
			wrong = errors.Join(wrong, fmt.Errorf("%s: %s, want %s", c.name, e, c.want))
		case !slices.Contains(names, e.String()) && (!attack || slices.Contains(notRefusals, e)):
			untried = cmp.Or(untried, newUntried("%s: %s", c.name, e))
		case attack && !slices.Contains(refusals, e):
			refusals = append(refusals, e)
		}
	}
	if wrong != nil { // what got through is not to be taken for what could not be tried
		return nil, wrong
	}
	return refusals, untried
}

// joinErrnos is a list of error numbers for people.
func joinErrnos(list []wasi.Errno) string {
	var names []string
	for _, e := range list {
		names = append(names, e.String())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
