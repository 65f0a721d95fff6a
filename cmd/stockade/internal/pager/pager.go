// Package pager shows what is longer than the screen in less.
//
// It starts a process outside of the jail, and what that shows was written by
// others. So it is less and nothing else, found at fixed places: PATH and PAGER can
// be set by a folder for whoever enters it. less runs no commands and writes no
// files (LESSSECURE), and of the environment it gets what it needs to know the
// terminal.
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

// lessPaths are where less is looked for.
var lessPaths = []string{"/usr/bin/less", "/bin/less", "/usr/local/bin/less", "/opt/homebrew/bin/less"}

// Find returns the path of less, if it is there and the environment does not say
// that nothing is to be paged: PAGER is empty or cat.
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

// passedVars are the variables that less gets as they are.
var passedVars = []string{"TERM", "LANG", "LC_ALL", "LC_CTYPE", "LINES", "COLUMNS", "TERMINFO"}

// environment is what less gets. Colours are shown, other escape sequences as text;
// what is on the screen stays when it ends, and Ctrl-C ends it.
func environment(lookup func(string) (string, bool)) []string {
	env := []string{"LESS=-FRXK", "LESSSECURE=1", "LESSHISTFILE=-"}
	for _, name := range passedVars {
		if value, ok := lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Pager holds text back until it is longer than the screen, and shows it in less
// from then on. It is used by one goroutine.
type Pager struct {
	// Less is its path, Screen the terminal on which it shows, which has so many rows
	// and columns. Lookup is the environment.
	Less          string
	Screen        *os.File
	Rows, Columns int
	Lookup        func(string) (string, bool)

	buffered     bytes.Buffer
	rows, column int // that held takes, and of its last row
	cmd          *exec.Cmd
	pipe         io.WriteCloser
	closed       bool // the person has seen enough
}

// Write takes text. After the person has left less, it takes it to nowhere.
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
	cmd := exec.CommandContext(context.Background(), p.Less) // it is the person who ends it
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

// send gives less text. An error is that it has ended.
func (p *Pager) send(text []byte) {
	if _, err := p.pipe.Write(text); err != nil {
		p.closed = true
	}
}

// Close shows what was held back, or waits until the person leaves less.
func (p *Pager) Close() error {
	if p.cmd == nil {
		_, err := p.Screen.Write(p.buffered.Bytes())
		return err
	}
	_ = p.pipe.Close()
	_ = p.cmd.Wait() // how it ended says nothing of what was shown
	return nil
}
