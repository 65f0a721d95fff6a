package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// dialogueTimeout is far more than any dialogue takes.
const dialogueTimeout = 2 * time.Minute

// dialogue runs a program on a pseudo-terminal of its own, as a person would
// sit at it, and has to end with a code:
//
//	terminal CODE DIALOGUE PROGRAM ARGUMENT...
//
// Each line of the file DIALOGUE is one thing to do: "? TEXT" waits until the
// program shows the text, "< TEXT" types a line, "<< KEY" a key, "! TEXT" fails at the end if
// the text was ever shown, "END" types the end of input, "INTERRUPT" types Ctrl-C, "CHANGE FILE" adds a
// line to a file, "RUN COMMAND" has a shell run another program meanwhile, "KILL" kills the program, whose code is -1 then. A file that begins with "~" is for a terminal that
// shows what is typed. Standard output goes to the file stdout.txt, so that
// only what a person is shown is on the terminal, and in the file terminal.txt. In a
// file that begins with "=" it goes to the terminal, which has 24 rows of 80 columns, or
// as many rows as stand behind the "=".
func dialogue(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: terminal CODE DIALOGUE PROGRAM ARGUMENT...")
	}
	control, name, err := openTerminal()
	ts.Check(err)
	defer control.Close()
	tty, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	ts.Check(err)

	program, err := exec.LookPath(args[2])
	ts.Check(err)
	var stdout bytes.Buffer
	cmd := exec.Command(program, args[3:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, &stdout, tty
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environment(ts)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if strings.HasPrefix(ts.ReadFile(args[1]), "=") {
		size := unix.Winsize{Row: 24, Col: 80}
		_, _ = fmt.Sscanf(ts.ReadFile(args[1]), "=%d", &size.Row)
		ts.Check(unix.IoctlSetWinsize(int(control.Fd()), unix.TIOCSWINSZ, &size))
		cmd.Stdout = tty
	}
	ts.Check(setEcho(control, strings.HasPrefix(ts.ReadFile(args[1]), "~")))
	err = cmd.Start()
	_ = tty.Close() // the program has its own
	ts.Check(err)

	// A dialogue that does not fit would wait for its program, and that for it.
	defer time.AfterFunc(dialogueTimeout, func() { _ = cmd.Process.Kill() }).Stop()
	shown := &display{r: control}
	var never []string
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		what, text, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		switch what {
		case "?":
			if !shown.until(text) {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				ts.Fatalf("the terminal never showed %q; it showed:\n%s", text, shown.all)
			}
		case "<":
			_, err := io.WriteString(control, text+"\n")
			ts.Check(err)
		case "<<": // a key, without Enter
			_, err := io.WriteString(control, text)
			ts.Check(err)
		case "END":
			_, err := io.WriteString(control, "\x04")
			ts.Check(err)
		case "INTERRUPT":
			_, err := io.WriteString(control, "\x03")
			ts.Check(err)
		case "CHANGE":
			f, err := os.OpenFile(ts.MkAbs(text), os.O_APPEND|os.O_WRONLY, 0)
			ts.Check(err)
			_, err = io.WriteString(f, "one line more\n")
			ts.Check(errors.Join(err, f.Close()))
		case "RUN":
			cmd := exec.Command("sh", "-c", text)
			cmd.Dir, cmd.Env = ts.MkAbs("."), environment(ts)
			if out, err := cmd.CombinedOutput(); err != nil {
				ts.Fatalf("%s: %v\n%s", text, err, out)
			}
		case "KILL":
			ts.Check(cmd.Process.Kill())
		case "!":
			never = append(never, text)
		}
	}
	shown.rest()
	_ = cmd.Wait() // its code is looked at
	ts.Logf("[terminal]\n%s", shown.all)
	ts.Check(os.WriteFile(ts.MkAbs("stdout.txt"), stdout.Bytes(), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs("terminal.txt"), []byte(shown.all), 0o644))
	for _, text := range never {
		if strings.Contains(shown.all, text) {
			ts.Fatalf("the terminal showed %q", text)
		}
	}
	if got := fmt.Sprint(cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("it ended with exit code %s, want %s", got, args[0])
	}
}

// rows fails unless the first question in a file, with all that belongs to it from the
// first blank row on, is on at most so many rows of so many columns:
//
//	rows ROWS COLUMNS FILE
func rows(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: rows ROWS COLUMNS FILE")
	}
	most, err := strconv.Atoi(args[0])
	ts.Check(err)
	columns, err := strconv.Atoi(args[1])
	ts.Check(err)
	text, _, asked := strings.Cut("\n"+ts.ReadFile(args[2]), "[?] ")
	_, text, begun := strings.Cut(text, "\n\n")
	if !asked || !begun {
		ts.Fatalf("there is no question")
	}
	n := 0
	for line := range strings.Lines(text + "[?] ") {
		n += max(1, (utf8.RuneCountInString(line)+columns-1)/columns)
	}
	if n > most {
		ts.Fatalf("the question takes %d rows of %d columns, want at most %d:\n%s", n, columns, most, text)
	}
}

func environment(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TEST_ACCOUNT_HOME", "TEST_WITHOUT", "XDG_CACHE_HOME", "NO_COLOR", "OPENAI_BASE_URL", "OPENAI_API_KEY", "STOCKADE_MODEL_NAME"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	for _, name := range []string{"TERM", "PAGER"} {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// openTerminal makes a pseudo-terminal.
func openTerminal() (control *os.File, name string, err error) {
	control, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, "", err
	}
	fd := int(control.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, "", err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, "", err
	}
	return control, fmt.Sprintf("/dev/pts/%d", n), nil
}

func setEcho(control *os.File, on bool) error {
	t, err := unix.IoctlGetTermios(int(control.Fd()), unix.TCGETS)
	if err != nil {
		return err
	}
	if t.Lflag &^= unix.ECHO; on {
		t.Lflag |= unix.ECHO
	}
	return unix.IoctlSetTermios(int(control.Fd()), unix.TCSETS, t)
}

// display is the text that a terminal has shown so far.
type display struct {
	r    io.Reader
	all  string
	seen int // of all, by until
}

// until reads until the text appears after what was looked for before.
func (s *display) until(text string) bool {
	for {
		if i := strings.Index(s.all[s.seen:], text); i >= 0 {
			s.seen += i + len(text)
			return true
		}
		if !s.read() {
			return false
		}
	}
}

func (s *display) rest() {
	for s.read() {
	}
}

// read fails when the last process has closed the terminal.
func (s *display) read() bool {
	buf := make([]byte, 4096)
	n, err := s.r.Read(buf)
	s.all += strings.ReplaceAll(string(buf[:n]), "\r\n", "\n")
	return err == nil
}

// typist writes to a terminal when it is asked, and waits until that is there to
// be read.
type typist struct {
	control *os.File
	tty     *os.File
	text    string
}

func (t *typist) Write(p []byte) (int, error) {
	if t.text == "" {
		return len(p), nil
	}
	if _, err := io.WriteString(t.control, t.text); err != nil {
		return 0, err
	}
	for n := 0; n < len(t.text); {
		var err error
		if n, err = waiting(t.tty); err != nil {
			return 0, err
		}
	}
	t.text = ""
	return len(p), nil
}

// waiting returns the number of bytes that can be read from a terminal.
func waiting(tty *os.File) (int, error) { return unix.IoctlGetInt(int(tty.Fd()), unix.TIOCINQ) }

// A key that is pasted with several lines is not given to the shell.
func TestWhatIsPastedBehindASecretIsDropped(t *testing.T) {
	control, name, err := openTerminal()
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	tty, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	text, err := readHidden(t.Context(), tty, &typist{control, tty, "first line\nsecond line\n"}, "value: ")
	if err != nil || text != "first line" {
		t.Errorf("read %q, %v", text, err)
	}
	if n, err := waiting(tty); n != 0 || err != nil {
		t.Errorf("%d bytes are left for whoever reads next, %v", n, err)
	}
}
