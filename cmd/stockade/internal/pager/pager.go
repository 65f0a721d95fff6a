// Package pager shows text that is longer than the screen in less.
//
// It starts a process outside of the jail, and others have written the text. Therefore it
// only runs less, from fixed paths: a folder can set PATH and PAGER for a person who
// enters it. less runs no commands and writes no files (LESSSECURE). Its environment has
// only the variables that describe the terminal.
package pager

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"unicode/utf8"
)

// lessPaths are the paths where less may be.
var lessPaths = []string{"/usr/bin/less", "/bin/less", "/usr/local/bin/less", "/opt/homebrew/bin/less"}

// Find returns the path of less. ok is false if less is not there, if the terminal cannot
// show it, or if PAGER is empty or cat, which turns paging off.
func Find(lookup func(string) (string, bool)) (path string, ok bool) {
	if pager, set := lookup("PAGER"); set && (strings.TrimSpace(pager) == "" || strings.TrimSpace(pager) == "cat") {
		return "", false
	}
	if term, _ := lookup("TERM"); term == "" || term == "dumb" {
		return "", false
	}
	for _, place := range lessPaths {
		if st, err := os.Stat(place); err == nil && st.Mode().IsRegular() {
			return place, true
		}
	}
	return "", false
}

// passedVars are the environment variables that less gets unchanged.
var passedVars = []string{"TERM", "LANG", "LC_ALL", "LC_CTYPE", "LINES", "COLUMNS", "TERMINFO"}

// environment returns the environment of less. Its options show colours and make other
// escape sequences visible; the screen stays after it ends, and Ctrl-C ends it.
func environment(lookup func(string) (string, bool)) []string {
	env := []string{"LESS=-FRXK", "LESSSECURE=1", "LESSHISTFILE=-"}
	for _, name := range passedVars {
		if value, ok := lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Pager collects text until it is longer than the screen, and from then on shows it in less.
// Only one goroutine may use it.
type Pager struct {
	// Less is the path of less. Screen is the terminal; Rows and Columns are its size. Lookup
	// returns the value of an environment variable; false: it is not set.
	Less          string
	Screen        *os.File
	Rows, Columns int
	Lookup        func(string) (string, bool)

	buffered     bytes.Buffer
	rows, column int // number of rows in buffered, and column where its last row ends
	cmd          *exec.Cmd
	pipe         io.WriteCloser
	closed       bool // the person has left less
}

// Write collects text while all of it fits the screen, and then passes it to less. After the
// person has left less, it drops text.
func (p *Pager) Write(text []byte) (int, error) {
	if p.closed {
		return len(text), nil
	}
	if p.cmd == nil {
		p.buffered.Write(text)
		for _, b := range text {
			switch {
			case b == '\n', p.column == p.Columns && utf8.RuneStart(b):
				p.rows, p.column = p.rows+1, 0
			case utf8.RuneStart(b):
				p.column++
			}
		}
		if p.rows < p.Rows {
			return len(text), nil
		}
		if err := p.start(); err != nil {
			return 0, err
		}
		p.send(p.buffered.Bytes())
		p.buffered.Reset()
		return len(text), nil
	}
	p.send(text)
	return len(text), nil
}

func (p *Pager) start() error {
	cmd := exec.CommandContext(context.Background(), p.Less) // the person ends it
	cmd.Env, cmd.Stdout, cmd.Stderr = environment(p.Lookup), p.Screen, p.Screen
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.pipe = cmd, pipe
	return nil
}

// send sends text to less. If less has ended, it marks the pager as closed.
func (p *Pager) send(text []byte) {
	if _, err := p.pipe.Write(text); err != nil {
		p.closed = true
	}
}

// Close shows text that was collected, or waits until the person leaves less.
func (p *Pager) Close() error {
	if p.cmd == nil {
		_, err := p.Screen.Write(p.buffered.Bytes())
		return err
	}
	_ = p.pipe.Close()
	_ = p.cmd.Wait() // the exit code does not matter
	return nil
}
