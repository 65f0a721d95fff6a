package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/secret"
)

// vault returns the stores of secrets, which are created by the first call. anew in that call
// makes a file that does not exist yet use a passphrase.
func (a *app) vault(anew bool) *secret.Vault {
	if a.secrets == nil {
		a.secrets = secret.NewVault(secret.NewKeyring(a.Dirs.KeyringNames()), a.secretsFile(anew), a.redactor)
	}
	return a.secrets
}

func (a *app) secretsFile(anew bool) *secret.File {
	return secret.NewFile(secret.FileOptions{
		Path: a.Dirs.Secrets(), KeyPath: a.Dirs.SecretsKey(), AskPassphrase: a.askPassphrase, UsePassphrase: anew,
	})
}

// askPassphrase asks for a passphrase on the terminal; anew: for a new one. It may only be
// called before turns: during a turn, another question may be open.
func (a *app) askPassphrase(ctx context.Context, anew bool) ([]byte, error) {
	if a.flags.json || a.noPassphrase.Load() {
		return nil, fmt.Errorf("%w: nobody can be asked now", secret.ErrUnavailable)
	}
	in, out, done, ok := a.terminal()
	if !ok {
		return nil, fmt.Errorf("%w: there is no terminal to ask on", secret.ErrUnavailable)
	}
	defer done()
	prompt := "passphrase of the secrets, which is not shown: "
	if anew {
		prompt = "new " + prompt
	}
	first, err := readHidden(ctx, in, out, prompt)
	if err != nil || !anew {
		return []byte(first), err
	}
	again, err := readHidden(ctx, in, out, "once more: ")
	if err == nil && again != first {
		err = errors.New("the two passphrases differ")
	}
	return []byte(first), err
}

// terminal returns the terminal for questions before turns. Output to it passes the redactor.
// The caller must call done. ok is false if there is no terminal.
func (a *app) terminal() (in *os.File, out io.Writer, done func(), ok bool) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return a.s.in, a.s.err, func() {}, a.s.interactive() // a system without /dev/tty
	}
	return tty, messageWriter{a.redactor.Writer(tty)}, func() { _ = tty.Close() }, true
}

// readHidden reads a line from a terminal without echo. Before it returns, it turns the echo
// on again. It drops pasted text after the line: the shell would show and run it.
func readHidden(ctx context.Context, in *os.File, out io.Writer, prompt string) (string, error) {
	fd := int(in.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	// Before the prompt: a person who sees it may type at once.
	if err := terminal.NoEcho(in); err != nil {
		return "", err
	}
	defer func() {
		terminal.FlushInput(in)
		_ = term.Restore(fd, state)
	}()
	terminal.FlushInput(in)
	fmt.Fprint(out, prompt)
	text, err := readOrCancel(ctx, func() (string, error) { return terminal.ReadHidden(in) })
	fmt.Fprintln(out)
	if errors.Is(err, io.EOF) {
		err = errors.New("nothing was typed")
	}
	return text, err
}

// readOrCancel calls read and waits until it has returned or ctx has ended. A read from a
// terminal cannot be cancelled: its goroutine stays behind.
func readOrCancel(ctx context.Context, read func() (string, error)) (string, error) {
	var (
		line string
		err  error
		done = make(chan struct{})
	)
	go func() {
		defer close(done)
		line, err = read()
	}()
	select {
	case <-done:
		return line, err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// redact makes all output of the program pass through a redactor.
func (s *stdio) redact(r *redact.Redactor) {
	s.redactor = r
	out := r.Writer(s.out)
	s.out, s.flush = out, out.Flush
	s.err = messageWriter{r.Writer(s.err)}
}

// messageWriter passes each write on at once, as a whole message.
type messageWriter struct{ w *redact.Writer }

func (m messageWriter) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	return n, errors.Join(err, m.w.Flush())
}
