//go:build screens

package screens

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/sqlite"
)

// These tests print what they measure. Memory is held to a bound; time is not, since it
// is also that of whatever else the machine does.

// used is the memory and time that a process has used so far.
type used struct {
	peak      int64 // of memory, in KiB
	processor time.Duration
}

func (u used) String() string {
	return fmt.Sprintf("%.1f MiB of memory at the most, %v of the processor", float64(u.peak)/1024, u.processor)
}

func usedBy(t testing.TB, process int) used {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		t.Fatal(err)
	}
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	// The name of the program, in brackets, may have blanks; after it the 12th and 13th
	// field are the times in hundredths of a second.
	_, after, _ := bytes.Cut(stat, []byte(") "))
	fields := strings.Fields(string(after))
	if peak == nil || len(fields) < 13 {
		t.Fatalf("%s%s", status, stat)
	}
	var u used
	u.peak, _ = strconv.ParseInt(string(peak[1]), 10, 64)
	for _, f := range fields[11:13] {
		ticks, _ := strconv.ParseInt(f, 10, 64)
		u.processor += time.Duration(ticks) * 10 * time.Millisecond
	}
	return u
}

// manyEvents is the number of events of the session that is resumed.
const manyEvents = 10_000

// maxMore limits the additional memory, in KiB, of a session with manyEvents over a
// session of one turn: of the conversation only the part for the next request is kept.
const maxMore = 32 << 10

// TestALongSessionOpensAtOnce resumes a session of ten thousand events.
func TestALongSessionOpensAtOnce(t *testing.T) {
	open := func(events int) (used, time.Duration) {
		p := newPerson(t)
		p.converses(events)
		s := p.sits(size{80, 24})
		s.types("stockade session resume last")
		begin := time.Now()
		s.presses("Enter")
		s.until(prompt)
		took := time.Since(begin)
		s.until("turn is the last of all")
		return usedBy(t, s.process()), took
	}
	short, shortTook := open(0)
	whole, took := open(manyEvents)
	t.Logf("a session of one turn: %v to the prompt, %v", shortTook.Round(time.Millisecond), short)
	t.Logf("a session of %d events: %v to the prompt, %v", manyEvents, took.Round(time.Millisecond), whole)
	if whole.peak > short.peak+maxMore {
		t.Errorf("the long session takes %d KiB of memory, the short one %d", whole.peak, short.peak)
	}
}

// converses has a session with one turn more than it takes for so many events.
func (p *person) converses(events int) {
	p.t.Helper()
	p.answers(calls("I look.", call("file_read", `{"path":"notes.md"}`)), text("This turn is the last of all."))
	p.runs("stockade", "run", "what is in the notes?")
	ctx := p.t.Context()
	store, err := sqlite.Open(ctx, filepath.Join(p.home, ".local", "share", "stockade", "sessions.db"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer store.Close()
	id, err := store.Resolve(ctx, "last")
	if err != nil {
		p.t.Fatal(err)
	}
	var turn []session.Event
	for e, err := range store.Events(ctx, id, 0) {
		if err != nil {
			p.t.Fatal(err)
		}
		if m, _ := e.Message(); e.Turn > 0 && m.Kind != llm.System { // that is told once
			turn = append(turn, e)
		}
	}
	for n := 2; (n-1)*len(turn) < events; n++ {
		var drafts []session.Draft
		for _, e := range turn {
			call := strings.ReplaceAll(e.Call, "call_1", fmt.Sprintf("call_1_%d", n))
			body := bytes.ReplaceAll(e.Body, []byte(`"call_1"`), fmt.Appendf(nil, `"call_1_%d"`, n))
			drafts = append(drafts, session.Draft{Session: id, Type: e.Type, Turn: n, Step: e.Step, Call: call, Body: body})
		}
		if _, err := store.Append(ctx, drafts...); err != nil {
			p.t.Fatal(err)
		}
	}
}

// TestALongAnswer streams a megabyte. Each line of it is in the scrollback once, in its
// place.
func TestALongAnswer(t *testing.T) {
	const bytes, line = 1 << 20, 64
	var answer strings.Builder
	lines := 0
	for ; answer.Len() < bytes; lines++ {
		fmt.Fprintf(&answer, "%-*s\n\n", line-2, fmt.Sprintf("%06d the goats are back behind the fence", lines))
	}
	p := newPerson(t)
	s := p.sits(size{80, 24})
	s.says("stockade chat")
	s.until(prompt)
	id := s.process()
	before := usedBy(t, id)
	a := text("%s\nThat was all.", answer.String())
	a.ChunkBytes = 256
	p.answers(a)
	begin := time.Now()
	s.says("tell me all")
	s.until(`That was all`)
	s.until(`\d tokens`) // the last row of all
	took := time.Since(begin)
	after := usedBy(t, id)
	t.Logf("at the prompt: %v", before)
	t.Logf("after %d bytes in %d lines, %v: %v", answer.Len(), lines, took.Round(time.Millisecond), after)
	s.once(lines)
}

// anySequence matches everything that a program sends to a terminal beside text.
var anySequence = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]`)

// TestStart prints how much longer the prompt of the chat takes than `stockade version`.
// The target is 50 ms.
func TestStart(t *testing.T) {
	const rounds = 21
	p := newPerson(t)
	p.shows("chat") // the folders are made, the files are read once
	var version, chat, more []time.Duration
	for range rounds {
		v, c := p.shows("version"), p.shows("chat")
		version, chat, more = append(version, v), append(chat, c), append(more, c-v)
	}
	for _, v := range []struct {
		name string
		all  []time.Duration
	}{{"version", version}, {"prompt of the chat", chat}, {"difference", more}} {
		slices.Sort(v.all)
		t.Logf("%-20s median %6.1f ms, from %.1f to %.1f", v.name, ms(v.all[rounds/2]), ms(v.all[0]), ms(v.all[rounds-1]))
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// shows starts the program on a terminal, and returns how long it takes to show its
// prompt, or to end.
func (p *person) shows(command string) time.Duration {
	p.t.Helper()
	far, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	defer far.Close()
	number, err := unix.IoctlGetInt(int(far.Fd()), unix.TIOCGPTN)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := errors.Join(unix.IoctlSetPointerInt(int(far.Fd()), unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(int(far.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})); err != nil {
		p.t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.CommandContext(p.t.Context(), program(p.t), command)
	cmd.Dir, cmd.Env = p.dir, p.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	begin := time.Now()
	err = cmd.Start()
	_ = tty.Close()
	if err != nil {
		p.t.Fatal(err)
	}
	defer time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }).Stop()
	seen := ""
	for buf := make([]byte, 4096); ; {
		n, err := far.Read(buf)
		seen += string(buf[:n])
		if err == nil && command == "chat" && promptBegins.MatchString(anySequence.ReplaceAllString(seen, "")) {
			took := time.Since(begin)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			return took
		}
		if err != nil { // the program has ended, and with it the terminal
			break
		}
	}
	_, _ = io.Copy(io.Discard, far)
	if err := cmd.Wait(); err != nil || command == "chat" {
		p.t.Fatalf("%s: %v: %s", command, err, seen)
	}
	return time.Since(begin)
}
