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

// vault is where secrets are kept. It opens nothing yet. anew lets a file that
// is not there yet have a passphrase.
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

// askPassphrase asks on the terminal, before turns only: in one, a question of
// another kind may be open.
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
		err = errors.New("the two are not the same")
	}
	return []byte(first), err
}

// terminal is where a person can be asked before turns. What is printed there
// passes the redactor.
func (a *app) terminal() (in *os.File, out io.Writer, done func(), ok bool) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return a.s.in, a.s.err, func() {}, a.s.interactive() // a system without /dev/tty
	}
	return tty, messageWriter{a.redactor.Writer(tty)}, func() { _ = tty.Close() }, true
}

// readHidden reads a line from a terminal that does not show it. However it
// ends, the terminal shows again what is typed; what was pasted behind the line
// is dropped, or the shell would show it and run it.
func readHidden(ctx context.Context, in *os.File, out io.Writer, prompt string) (string, error) {
	fd := int(in.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	// Before the prompt: who sees that may type at once.
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

// readOrCancel waits for what a person types, or for the end of ctx: a read from a
// terminal cannot be cancelled, and is left alone then.
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

// redact makes everything that is printed pass through a redactor.
func (s *stdio) redact(r *redact.Redactor) {
	s.redactor = r
	out := r.Writer(s.out)
	s.out, s.flush = out, out.Flush
	s.err = messageWriter{r.Writer(s.err)}
}

// messageWriter is a writer that gets whole messages: nothing of one is held back.
type messageWriter struct{ w *redact.Writer }

func (m messageWriter) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	return n, errors.Join(err, m.w.Flush())
}
