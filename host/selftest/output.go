package selftest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"

	"github.com/stockade-dev/stockade/host/selftest/machine"
)

// The limits of the attacks on output, in bytes.
const (
	logLimit    = 64 << 10
	outputLimit = 64 << 10
)

// leaveText adds the result of a single text, as words.
func leaveText(at, n uint32) func(s *script) {
	return func(s *script) {
		list := s.words(contentText, at, n, 0, 0, 0, 0, 0, 0)
		s.leave(resultOK, list.at, 1, 0, 0, 0)
	}
}

// leaveStructured adds the result of a structured value.
func leaveStructured(json string) func(s *script) {
	return func(s *script) {
		text := s.text(json)
		s.leave(resultOK, 0, 0, 1, text.at, text.n)
	}
}

func outputAttacks() []Attack {
	const outside = "lie outside"
	leave := func(words ...uint32) func(*script) { return func(s *script) { s.leave(words...) } }
	leaveAt := func(at uint32) func(*script) { return func(s *script) { s.add("leave", at) } }
	// large adds 100 MB of memory, without writing to it.
	large := func(end func(s *script)) func(*script) {
		return func(s *script) {
			s.add("memory.grow", 100<<20/page+1)
			end(s)
		}
	}
	const base = machine.Pages * page
	limits := Guest{Limits: policy.Limits{OutputBytes: outputLimit, LogBytes: logLimit}}
	return slices.Concat([]Attack{
		limitAttack("result-100-mb", "Return a text of 100 MB.", limits, large(leaveText(base, 100<<20)), tool.CodeBadABI, "more than the limit").forKinds(native),
		limitAttack("result-structured-100-mb", "Return a structured value of 100 MB.", limits, large(leave(resultOK, 0, 0, 1, base, 100<<20)), tool.CodeBadABI, "more than the limit").forKinds(native),
		limitAttack("result-length-overflow", "Return a text of four billion bytes at the end of the memory.", limits, leaveText(base-16, minusOne), tool.CodeBadABI, "more than the limit").forKinds(native),
		limitAttack("result-text-outside", "Return a text that lies behind the end of the memory.", limits, leaveText(base-16, 64), tool.CodeBadABI, outside).forKinds(native),
		limitAttack("result-outside", "Return a result that lies behind the end of the memory.", limits, leaveAt(base-8), tool.CodeBadABI, outside).forKinds(native),
		limitAttack("result-at-the-end", "Return a result at the last address there is.", limits, leaveAt(0xffff_fffc), tool.CodeBadABI, outside).forKinds(native),
		limitAttack("result-misaligned", "Return a result at an odd address.", limits, leaveAt(machine.ImageBase+1), tool.CodeBadABI, "multiple of").forKinds(native),
		limitAttack("result-list-bomb", "Return a list of four billion texts.", limits, leave(resultOK, machine.ImageBase, minusOne, 0, 0, 0), tool.CodeBadABI, "more than the limit").forKinds(native),
		limitAttack("result-list-overflow", "Return a list whose size is zero in 32 bits.", limits, leave(resultOK, machine.ImageBase, 0x1000_0000, 0, 0, 0), tool.CodeBadABI, "more than the limit").forKinds(native),
		limitAttack("result-bad-variant", "Return a result that is neither a success nor an error.", limits, leave(7, 0, 0, 0, 0, 0), tool.CodeBadABI, "discriminant").forKinds(native),
		limitAttack("result-bad-content", "Return content of a kind that there is not.", limits,
			func(s *script) { list := s.words(99, 0, 0, 0, 0, 0, 0, 0, 0); s.leave(resultOK, list.at, 1, 0, 0, 0) }, tool.CodeBadABI, "discriminant").forKinds(native),
		limitAttack("result-bad-error", "Return an error of a kind that there is not.", limits, leave(resultError, 99, 0, 0, 0, 0), tool.CodeBadABI, "discriminant").forKinds(native),
		limitAttack("error-outside", "Return an error whose text lies behind the end of the memory.", limits, leave(resultError, 8, base-16, 1<<30, 0, 0), tool.CodeBadABI, outside).forKinds(native),
		limitAttack("json-broken", "Return a structured value that is no JSON.", limits, leaveStructured(`{"a":`), tool.CodeBadABI, "not valid JSON").forKinds(native),
		limitAttack("json-not-a-number", "Return numbers that JSON does not have.", limits, leaveStructured(`{"a":NaN,"b":Infinity}`), tool.CodeBadABI, "not valid JSON").forKinds(native),
		limitAttack("json-nested", "Return JSON that is nested nearly ten thousand deep, as deep as Go reads.", limits,
			leaveStructured(strings.Repeat("[", 9_999)+strings.Repeat("]", 9_999)), tool.CodeBadABI, "nests deeper").forKinds(native),
		{Name: "result-not-utf8", kinds: native, Description: "Return bytes that are not UTF-8, and a terminal's commands.", run: resultNotUTF8},
		{Name: "result-long", kinds: native, Description: "Return more text than the model is to get.", run: resultLong},
		{Name: "error-long", kinds: native, Description: "Return an error of 20 MB.", run: errorLong},
		{Name: "stdout-flood", kinds: reactors, Description: "Write 128 MB to standard output.", run: streamFlood(1)},
		{Name: "stderr-flood", Description: "Write 128 MB to standard error, and crash.", run: streamFlood(2)},
		{Name: "log-flood", kinds: reactors, Description: "Log fifty thousand messages.", run: logFlood},
		{Name: "log-long", kinds: native, Description: "Log a message of 3 MB.", run: logLong},
		{Name: "progress-flood", kinds: native, Description: "Report progress thirty thousand times.", run: progressFlood},
	}, commandOutputAttacks(), pluginOutputAttacks())
}

func resultNotUTF8(t *trial) (string, error) {
	s := &script{}
	text := s.bytes([]byte("\xff\xfe\xc0\xaftext"))
	leaveText(text.at, text.n)(s)
	o, err := t.runScript(Guest{}, s)
	switch {
	case err != nil:
		return "", err
	case o.Result.Err != nil && o.Result.Err.Code == tool.CodeBadABI:
		return stoppedBy(o, "", tool.CodeBadABI)
	case !bytes.Contains(o.Result.Output, []byte("text")):
		return "", newUntried("the text did not come back")
	case !utf8.Valid(o.Result.Envelope()) || !json.Valid(o.Result.Envelope()):
		return "", errors.New("the result is not UTF-8")
	}
	return "abi: bytes that are not UTF-8 are replaced", nil
}

func resultLong(t *trial) (string, error) {
	const length = 4 << 20
	s := &script{}
	s.add("memory.grow", length/page)
	s.add("fill", machine.Pages*page, int('x'), length)
	leaveText(machine.Pages*page, length)(s)
	o, err := t.runScript(Guest{Limits: policy.Limits{OutputBytes: outputLimit}}, s)
	return t.checkCut(o.Result, string(o.Result.Output), err)
}

func errorLong(t *trial) (string, error) {
	const length = 20 << 20
	s := &script{}
	s.add("memory.grow", length/page)
	s.add("fill", machine.Pages*page, int('x'), length)
	s.leave(resultError, 8, machine.Pages*page, length, 0, 0)
	o, err := t.runScript(Guest{Limits: policy.Limits{OutputBytes: outputLimit}}, s)
	return t.checkCutFailure(o.Result, err)
}

// streamFlood floods a descriptor. The output comes back when the call has ended; after a
// crash, in the failure.
func streamFlood(fd int) func(t *trial) (string, error) {
	return func(t *trial) (string, error) {
		const times = 2048
		s := &script{}
		s.add("fill", machine.BufferBase, int('x'), machine.BufferSize)
		list := s.words(machine.BufferBase, machine.BufferSize)
		write := s.add("fd_write", fd, list.at, 1, s.words(0).at)
		s.repeatWhileZero(write, times-1)
		if fd == 2 {
			s.add("trap")
		}
		o, err := t.runScript(Guest{Limits: policy.Limits{LogBytes: logLimit}}, s)
		if err != nil {
			return "", err
		}
		kept := o.Transcript.Bytes
		if fd == 2 {
			e := o.Result.Err
			if e == nil || e.Code != tool.CodeTrap || !strings.Contains(e.Message, "unreachable") {
				return "", newUntried("the guest did not get to the end")
			}
			kept = max(kept, len(e.Stderr))
		} else if r, err := readReport(o.Result.Output); err != nil || r.callCount(write) != times {
			return "", newUntried("the guest did not get to the end")
		}
		return t.checkFew(kept, 1024, logLimit+1024, "bytes", fmt.Sprintf("output: cut at %d KiB", logLimit>>10), nil)
	}
}

func logFlood(t *trial) (string, error) {
	const times = 50_000
	s := &script{}
	say := s.log(strings.Repeat("x", 100))
	s.repeatWhileZero(say, times-1)
	o, err := t.runToEnd(Guest{Limits: policy.Limits{LogBytes: logLimit}}, s, say, times)
	by, err := t.checkFew(o.Transcript.Bytes, 1000, logLimit+1024, "bytes", fmt.Sprintf("log: the %d KiB of a call", logLimit>>10), err)
	t.detail = fmt.Sprintf("%d of %d messages came through", o.Transcript.Messages, times)
	return by, err
}

// checkFew fails if more than most of something came through; fewer than least would mean that
// nothing was tried. by is the mechanism that kept back the rest.
func (t *trial) checkFew(n, least, most int, what, by string, err error) (string, error) {
	came := fmt.Sprintf("%d %s came through", n, what)
	switch {
	case err != nil:
		return "", err
	case n > most:
		return "", errors.New(came)
	case n < least:
		return "", newUntried("%s", came)
	}
	t.detail = came
	return by, nil
}

func logLong(t *trial) (string, error) {
	const length = 3 << 20
	s := &script{}
	say := s.add("log.log", 2, 0, length) // nearly the whole memory of the machine
	o, err := t.runToEnd(Guest{Limits: policy.Limits{LogBytes: logLimit}}, s, say, 1)
	return t.checkFew(o.Transcript.Bytes, 1, longestMessage, "bytes", "log: the length of a message", err)
}

// longestMessage limits the bytes of one message that come through.
const longestMessage = 8 << 10

func progressFlood(t *trial) (string, error) {
	const times, most = 30_000, 10_000
	s := &script{}
	report := s.add("progress.report", 1, 0, 0, 0, 0)
	s.repeatWhileZero(report, times-1)
	o, err := t.runToEnd(Guest{}, s, report, times)
	return t.checkFew(o.Transcript.Reports, 1, most, "reports", "progress: the reports of a call", err)
}
