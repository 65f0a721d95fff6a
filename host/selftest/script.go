package selftest

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// script is what the machine is to do. Its methods add calls; every value that
// they return is known before the machine runs, and is good for an operand.
type script struct {
	data  []byte // from imageBase+4 on
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

	// What it is for, see script.refused and script.must.
	name string
	want want
	also []errno // are refusals too, which elsewhere speak of a mistake in the script
}

type want int

const (
	wantNothing want = iota
	wantDone         // part of carrying out the attack: it has to succeed
	wantRefused      // the attack: it has to be refused
)

// cell is an operand that the machine loads from this address.
type cell uint32

// span is some bytes in the memory of the machine.
type span struct{ at, n uint32 }

// bytes puts bytes into the memory.
func (s *script) bytes(b []byte) span {
	for len(s.data)%8 != 4 { // behind the address of the first call
		s.data = append(s.data, 0)
	}
	at := imageBase + 4 + uint32(len(s.data))
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

// room takes n bytes of the report, which are zero until a call writes there.
func (s *script) room(n int) span {
	r := span{reportBase + resultsEnd + s.out, uint32(n)}
	s.out += uint32(n+7) &^ 7
	if s.out > reportSize-resultsEnd {
		panic("selftest: the script leaves too much in the report")
	}
	return r
}

// add adds a call of a function, by its name.
func (s *script) add(function string, operands ...any) *call {
	if n, ok := machineParams()[function]; !ok || n != len(operands) {
		panic(fmt.Sprintf("selftest: %s with %d operands", function, len(operands)))
	}
	c := &call{function: function, operands: operands, name: function, result: reportBase + uint32(len(s.calls)*resultSize)}
	s.calls = append(s.calls, c)
	if len(s.calls)*resultSize > resultsEnd {
		panic("selftest: the script has too many calls")
	}
	return c
}

// again repeats what was added from a call on, up to so many times, while the
// call before it returns zero.
func (s *script) again(from *call, times int) *call { return s.add("again", from, times) }

// always repeats what was added from a call on, so many times.
func (s *script) always(from *call, times int) *call { return s.add("always", from, times) }

// must says that the attack cannot be carried out unless the call succeeds.
func (c *call) must(name string) *call { c.name, c.want = name, wantDone; return c }

// refused says that the attack is this call, which has to be refused.
func (c *call) refused(name string) *call { c.name, c.want = name, wantRefused; return c }

// refusedBadF is refused, also as a call on what is no descriptor, or none for that.
func (c *call) refusedBadF(name string) *call { return c.refusedAlso(name, errnoBadF) }

// refusedAlso is refused, also with numbers that elsewhere are no refusal.
func (c *call) refusedAlso(name string, also ...errno) *call {
	c.also = append(c.also, also...)
	return c.refused(name)
}

// scriptPrefix is what comes before a script in the arguments of the machine.
// No argument has a name that is sorted before this one.
const scriptPrefix = `{"asm":"`

// arguments are those of the call that carries out the script.
func (s *script) arguments(more map[string]string) json.RawMessage {
	args := map[string]string{"asm": hex.EncodeToString(s.image())}
	for k, v := range more {
		args[k] = v
	}
	raw, err := json.Marshal(args) // in the order of the names
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
		at += uint32(opSize + len(c.operands)*operandSize)
	}
	image := append(le32(first), s.data...)
	for _, c := range s.calls {
		image = append(image, le32(uint32(machineNumbers()[c.function]), c.result, uint32(opSize+len(c.operands)*operandSize), 0)...)
		for _, o := range c.operands {
			kind, value := immediate, uint64(0)
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
				kind, value = indirect, uint64(o)
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
	if len(image) > imageBytes {
		panic("selftest: the script is too large")
	}
	return image
}

// report is what the machine has left.
type report []byte

var errNoReport = errors.New("it is no report of the machine")

// readReport finds the report in the output of a call.
func readReport(output json.RawMessage) (report, error) {
	var out struct {
		Output string `json:"output"`
	}
	if err := json.Unmarshal(output, &out); err != nil {
		return nil, errNoReport
	}
	r, err := hex.DecodeString(out.Output)
	if err != nil || len(r) != reportSize {
		return nil, errNoReport
	}
	return r, nil
}

func (r report) u32(at uint32) uint32 { return binary.LittleEndian.Uint32(r[at-reportBase:]) }

func (r report) span(s span) []byte { return r[s.at-reportBase:][:s.n] }

// returned is what a call returned the last time.
func (r report) returned(c *call) uint32 { return r.u32(c.result) }

// errno is returned as an error number.
func (r report) errno(c *call) errno { return errno(r.returned(c)) }

// times is how often a call was made.
func (r report) times(c *call) int { return int(r.u32(c.result + 4)) }

// check looks whether all that was to be done was done, and all that was to be
// refused was. It returns the numbers of the refusals.
func (r report) check(s *script) ([]errno, error) {
	var refusals []errno
	for _, c := range s.calls {
		e := r.errno(c)
		switch {
		case c.want == wantNothing:
		case r.times(c) == 0:
			return nil, notTried("the guest did not get as far as: %s", c.name)
		case c.want == wantDone && e != 0:
			return nil, notTried("%s: %s", c.name, e)
		case c.want == wantDone:
		case e == 0:
			return nil, fmt.Errorf("it worked: %s", c.name)
		case slices.Contains([]errno{errnoNoSys, errnoFault, errnoBadF}, e) && !slices.Contains(c.also, e):
			return nil, notTried("%s: %s", c.name, e)
		case !slices.Contains(refusals, e):
			refusals = append(refusals, e)
		}
	}
	return refusals, nil
}

// errno is an error number of WASI preview 1.
type errno uint32

// The numbers that say something of the attempt rather than of a refusal.
const (
	errnoBadF  errno = 8
	errnoFault errno = 21
	errnoNoSys errno = 52
)

var errnoNames = strings.Fields(`SUCCESS 2BIG ACCES ADDRINUSE ADDRNOTAVAIL AFNOSUPPORT AGAIN ALREADY BADF BADMSG BUSY CANCELED CHILD
	CONNABORTED CONNREFUSED CONNRESET DEADLK DESTADDRREQ DOM DQUOT EXIST FAULT FBIG HOSTUNREACH IDRM ILSEQ INPROGRESS INTR INVAL IO
	ISCONN ISDIR LOOP MFILE MLINK MSGSIZE MULTIHOP NAMETOOLONG NETDOWN NETRESET NETUNREACH NFILE NOBUFS NODEV NOENT NOEXEC NOLCK NOLINK
	NOMEM NOMSG NOPROTOOPT NOSPC NOSYS NOTCONN NOTDIR NOTEMPTY NOTRECOVERABLE NOTSOCK NOTSUP NOTTY NXIO OVERFLOW OWNERDEAD PERM PIPE
	PROTO PROTONOSUPPORT PROTOTYPE RANGE ROFS SPIPE SRCH STALE TIMEDOUT TXTBSY XDEV NOTCAPABLE`)

func (e errno) String() string {
	switch {
	case e == 0:
		return "no error"
	case int(e) < len(errnoNames):
		return "E" + errnoNames[e]
	}
	return fmt.Sprintf("error %d", uint32(e))
}

// errnos is a list of error numbers for people.
func errnos(list []errno) string {
	var names []string
	for _, e := range list {
		names = append(names, e.String())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
