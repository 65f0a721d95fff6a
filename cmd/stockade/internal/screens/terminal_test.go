//go:build screens

package screens

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// patience is far more than a screen takes to appear. tick is how often a screen is
// looked at: tmux does not tell when a program has drawn.
const (
	patience = 40 * time.Second
	tick     = 15 * time.Millisecond
)

// size is that of a terminal, in columns and rows.
type size struct{ columns, rows int }

func (s size) String() string { return fmt.Sprintf("%dx%d", s.columns, s.rows) }

// person sits at a terminal of tmux's own, with a home, a small repository and a
// model that says what it is told.
type person struct {
	t     testing.TB
	home  string
	dir   string // the repository
	model *model
	env   []string
	tmux  string // the socket
}

// newPerson makes the home and the repository.
func newPerson(t testing.TB) *person {
	t.Helper()
	home := filepath.Join(shortDir(t), "ada")
	p := &person{t: t, home: home, dir: filepath.Join(home, "garden"), model: serve(t), tmux: filepath.Join(filepath.Dir(home), "tmux")}
	p.env = []string{
		"HOME=" + home, "SHELL=/bin/sh", "LANG=C.UTF-8", "PS1=$ ", "ENV=", "TERM=xterm-256color", // tmux sets the TERM of its programs
		"PATH=" + filepath.Dir(program(t)) + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"OPENAI_BASE_URL=" + p.model.url, "OPENAI_API_KEY=" + key, "STOCKADE_MODEL_NAME=scripted",
		"GIT_AUTHOR_DATE=2026-11-02T08:00:00Z", "GIT_COMMITTER_DATE=2026-11-02T08:00:00Z", "GIT_CONFIG_NOSYSTEM=1",
	}
	if err := os.CopyFS(p.dir, os.DirFS("testdata/garden")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(home, ".config", "git"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.writes("../.gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n")
	p.runs("git", "init", "-q")
	p.runs("git", "add", ".")
	p.runs("git", "commit", "-q", "-m", "The garden")
	return p
}

// shortDir makes a directory whose name has always the same length, so that a row
// with it is broken at the same place. It is removed at the end.
func shortDir(t testing.TB) string {
	t.Helper()
	for n := os.Getpid(); ; n++ {
		dir := filepath.Join(os.TempDir(), fmt.Sprintf("screens%06x", n&0xffffff))
		err := os.Mkdir(dir, 0o700)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			// A program that lost its terminal may still write there.
			var err error
			if !poll(t, func() bool { err = os.RemoveAll(dir); return err == nil }) {
				t.Error(err)
			}
		})
		return dir
	}
}

// program is the path of the program that is looked at.
func program(t testing.TB) string {
	t.Helper()
	path, err := filepath.Abs("../../../../bin/stockade")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v: run `make test-screens`, which builds it", err)
	}
	return path
}

// writes writes a file of the repository.
func (p *person) writes(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// reads reads a file of the repository.
func (p *person) reads(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

func (p *person) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.t.Context(), name, args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	return cmd
}

// runs runs a program without a terminal, which has to succeed.
func (p *person) runs(name string, args ...string) string {
	p.t.Helper()
	if name == "stockade" {
		name = program(p.t)
	}
	out, err := p.command(name, args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// sits opens a terminal with a shell, which shows "$ ".
func (p *person) sits(z size) *screen {
	p.t.Helper()
	s := &screen{person: p, size: z}
	config, err := filepath.Abs("testdata/tmux.conf")
	if err != nil {
		p.t.Fatal(err)
	}
	s.tell("", "-f", config, "new-session", "-d", "-s", "s", "-x", fmt.Sprint(z.columns), "-y", fmt.Sprint(z.rows), "-c", p.dir, "exec /bin/sh")
	p.t.Cleanup(func() {
		cmd := exec.CommandContext(context.WithoutCancel(p.t.Context()), "tmux", "-S", p.tmux, "kill-server")
		if out, err := cmd.CombinedOutput(); err != nil {
			p.t.Errorf("tmux: %v: %s", err, out)
		}
	})
	s.until(`^\$$`)
	return s
}

// screen is a terminal in which a shell runs.
type screen struct {
	*person
	size  size
	shown []shown // screens that compares has seen
}

// shown is a screen that is compared.
type shown struct{ name, text string }

// tell has tmux do something.
func (s *screen) tell(input string, args ...string) string {
	s.t.Helper()
	cmd := s.command("tmux", append([]string{"-S", s.tmux}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	var message bytes.Buffer
	cmd.Stderr = &message
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("tmux %q: %v: %s", args, err, message.String())
	}
	return string(out)
}

// types types a text as it is.
func (s *screen) types(text string) {
	s.t.Helper()
	s.tell("", "send-keys", "-t", "s", "-l", "--", text)
}

// presses presses keys by their names in tmux: Enter, C-c, Up.
func (s *screen) presses(keys ...string) {
	s.t.Helper()
	s.tell("", append([]string{"send-keys", "-t", "s"}, keys...)...)
}

// says types a line.
func (s *screen) says(line string) { s.t.Helper(); s.types(line); s.presses("Enter") }

// pastes pastes a text as a terminal does: marked as pasted, if the program wants that.
func (s *screen) pastes(text string) {
	s.t.Helper()
	s.tell(text, "load-buffer", "-b", "pasted", "-", ";", "paste-buffer", "-p", "-d", "-b", "pasted", "-t", "s")
}

// sends sends bytes as a terminal may, in one piece.
func (s *screen) sends(bytes string) {
	s.t.Helper()
	s.presses(append([]string{"-H"}, strings.Fields(fmt.Sprintf("% x", bytes))...)...)
}

// resizes gives the terminal another size.
func (s *screen) resizes(z size) {
	s.t.Helper()
	s.tell("", "resize-window", "-t", "s", "-x", fmt.Sprint(z.columns), "-y", fmt.Sprint(z.rows))
}

// capture returns the text of the terminal, without blanks at the ends of rows and
// without blank rows at the end.
func (s *screen) capture(flags ...string) string {
	s.t.Helper()
	out := s.tell("", append([]string{"capture-pane", "-p", "-t", "s"}, flags...)...)
	return strings.TrimRight(out, "\n") + "\n"
}

// scrollback is everything that the terminal has shown, the rows that were too long for
// it in one.
func (s *screen) scrollback() string { s.t.Helper(); return s.capture("-S", "-", "-J") }

// until waits until the screen matches a pattern, and returns it.
func (s *screen) until(pattern string) string { s.t.Helper(); return s.waits(pattern, true) }

// unless waits until the screen does not match a pattern.
func (s *screen) unless(pattern string) string { s.t.Helper(); return s.waits(pattern, false) }

func (s *screen) waits(pattern string, want bool) string {
	s.t.Helper()
	matches := regexp.MustCompile("(?m)" + pattern)
	text := ""
	if !poll(s.t, func() bool { text = s.capture(); return matches.MatchString(text) == want }) {
		s.t.Fatalf("the screen never came to match %q (%v); it shows:\n%s%s", pattern, want, text, s.model.state())
	}
	return text
}

// settles waits until the screen stays as it is: a question is not answered by a key
// that is pressed when it has just come.
func (s *screen) settles() {
	s.t.Helper()
	since, last := time.Now(), ""
	poll(s.t, func() bool {
		if text := steady(s.capture()); text != last {
			since, last = time.Now(), text
		}
		return time.Since(since) > settled
	})
}

// poll waits until is returns true. It returns false after a long wait.
func poll(t testing.TB, is func() bool) bool {
	t.Helper()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for end := time.Now().Add(patience); ; {
		if is() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		<-ticker.C
	}
}

// process is the id of the program that runs in the shell.
func (s *screen) process() int {
	s.t.Helper()
	shell := strings.TrimSpace(s.tell("", "display-message", "-p", "-t", "s", "#{pane_pid}"))
	children := ""
	poll(s.t, func() bool {
		out, err := os.ReadFile(filepath.Join("/proc", shell, "task", shell, "children"))
		children = strings.TrimSpace(string(out))
		return err != nil || children != ""
	})
	id, err := strconv.Atoi(children)
	if err != nil {
		s.t.Fatalf("not one program runs in the shell: %q", children)
	}
	return id
}
