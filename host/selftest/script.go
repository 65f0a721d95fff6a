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

// script is the program of the machine. Its methods add calls; the addresses that they
// return are known before the machine runs, and can be operands.
type script struct {
	data  []byte // the memory from machine.ImageBase+4 on
	calls []*call
	out   uint32 // bytes of the report used after the results
}

func le64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// call is one call of a function of the machine.
type call struct {
	function string
	operands []any // int, int64, uint32, uint64, cell, *call
	at       uint32
	result   uint32 // address of its result in the report

	// name describes the call for people. want lists the results it may have, separated
	// by spaces: "ok" is success, "refused" any refusal, others are error numbers. Empty:
	// any result.
	name, want string
}

// cell is the address of an operand that the machine loads.
type cell uint32

// span is a range of bytes in the memory of the machine.
type span struct{ at, n uint32 }

// bytes adds bytes to the memory.
func (s *script) bytes(b []byte) span {
	for len(s.data)%8 != 4 { // after the address of the first call
		s.data = append(s.data, 0)
	}
	at := machine.ImageBase + 4 + uint32(len(s.data))
	s.data = append(s.data, b...)
	return span{at, uint32(len(b))}
}

func (s *script) text(t string) span { return s.bytes([]byte(t)) }

// words adds 32-bit numbers to the memory.
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

// repeatWhileZero repeats the calls from a call on, up to that many times, while the call
// before it returns zero.
func (s *script) repeatWhileZero(from *call, times int) *call { return s.add("again", from, times) }

// repeat repeats the calls from a call on, that many times.
func (s *script) repeat(from *call, times int) *call { return s.add("always", from, times) }

// expect sets the description and the allowed results of the call. Unless "ok" is
// allowed, the call is the attack.
func (c *call) expect(name, want string) *call { c.name, c.want = name, want; return c }

// mustSucceed marks a call that must succeed, or the attack could not be tried.
func (c *call) mustSucceed(name string) *call { return c.expect(name, "ok") }

// mustBeRefused marks a call as the attack, which must be refused. The errors in also
// count as refusals, although elsewhere they mean a mistake in the script.
func (c *call) mustBeRefused(name string, also ...string) *call {
	return c.expect(name, strings.Join(append(also, "refused"), " "))
}

// arguments returns the arguments of the call that executes the script. An empty command
// is not passed.
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
	image = append(image, le32(0)...) // the end of the calls
	if len(image) > machine.ImageBytes {
		panic("selftest: the script is too large")
	}
	return image
}

// notRefusals are error numbers that mean a mistake in the attempt rather than a refusal.
var notRefusals = []wasi.Errno{wasi.EBADF, wasi.EFAULT, wasi.ENOSYS}

// report is the output of the machine.
type report []byte

var errNoReport = errors.New("it is no report of the machine")

// readReport finds the report in the output of a call.
func readReport(output json.RawMessage) (report, error) {
	var out struct {
		Output string `json:"output"`
	}
	// The output of a described command is a text inside.
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

// resultOf returns the last result of a call.
func (r report) resultOf(c *call) uint32 { return r.u32(c.result) }

// errno returns the last result of a call as an error number.
func (r report) errno(c *call) wasi.Errno { return wasi.Errno(min(r.resultOf(c), math.MaxUint16)) }

// callCount returns the number of times that a call was made.
func (r report) callCount(c *call) int { return int(r.u32(c.result + 4)) }

// check fails if a call that must succeed did not, or if an attack was not refused. It
// returns the error numbers of the refusals.
func (r report) check(s *script) ([]wasi.Errno, error) { return r.compare(s, false) }

// compare is check; with exact, an error number that the script does not expect is an
// error, too. That is for tests: systems differ in their numbers.
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
	if wrong != nil { // an attack that worked must not look like one that could not be tried
		return nil, wrong
	}
	return refusals, untried
}

// joinErrnos returns a list of error numbers for people.
func joinErrnos(list []wasi.Errno) string {
	var names []string
	for _, e := range list {
		names = append(names, e.String())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
