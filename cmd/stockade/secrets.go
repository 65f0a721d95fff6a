package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/term"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/tool"
)

// vault is where secrets are kept. It opens nothing yet. anew lets a file that
// is not there yet have a passphrase.
func (a *app) vault(anew bool) *secret.Vault {
	if a.secrets == nil {
		a.secrets = secret.NewVault(secret.NewKeyring(a.dirs.keyringNames()), a.secretsFile(anew), a.known)
	}
	return a.secrets
}

func (a *app) secretsFile(anew bool) *secret.File {
	return secret.NewFile(secret.FileOptions{
		Path: a.dirs.secrets(), Key: a.dirs.secretsKey(), Passphrase: a.askPassphrase, NewPassphrase: anew,
	})
}

// learnSecrets reads the secrets that the tools of a catalog ask for, so that
// they are known before anything that may hold one is shown or recorded, and a
// passphrase is asked for before a turn and not in the middle of one. Where no
// tool asks for any, nothing is opened. The provider's key is a secret, too.
func (a *app) learnSecrets(ctx context.Context, catalog *tool.Catalog) {
	defer a.asked.Store(true)
	if key := a.s.env(a.cfg.Model.APIKeyEnv); len(key) >= minKeyBytes {
		a.known.Add(key)
	}
	seen := map[string]bool{} // names, and what was said
	for _, name := range catalog.Names() {
		e, _ := catalog.Find(name)
		for _, s := range e.Capabilities.Secrets {
			if seen[s.Name] {
				continue
			}
			seen[s.Name] = true
			_, err := a.vault(false).Get(ctx, s.Name)
			if err != nil && !errors.Is(err, secret.ErrNotFound) && !seen[err.Error()] {
				seen[err.Error()] = true // one reason can hold for all of them
				a.s.note("warning: a secret cannot be read: %v", err)
			}
		}
	}
}

// minKeyBytes is how long the key of a provider is at least. What is shorter is a
// word for a local server, such as "ollama", and stands in ordinary text.
const minKeyBytes = 12

// askPassphrase asks on the terminal, before turns only: in one, a question of
// another kind may be open.
func (a *app) askPassphrase(ctx context.Context, anew bool) ([]byte, error) {
	if a.flags.json || a.asked.Load() {
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
	return tty, messages{a.known.Writer(tty)}, func() { _ = tty.Close() }, true
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
	type line struct {
		text string
		err  error
	}
	lines := make(chan line, 1)
	go func() { // a read from a terminal cannot be cancelled
		text, err := terminal.ReadHidden(in)
		lines <- line{text, err}
	}()
	select {
	case l := <-lines:
		fmt.Fprintln(out)
		if errors.Is(l.err, io.EOF) {
			l.err = errors.New("nothing was typed")
		}
		return l.text, l.err
	case <-ctx.Done():
		fmt.Fprintln(out)
		return "", context.Cause(ctx)
	}
}

// redact makes everything that is printed pass through a redactor.
func (s *stdio) redact(r *redact.Redactor) {
	s.known = r
	out := r.Writer(s.out)
	s.out, s.flush = out, out.Flush
	s.err = messages{r.Writer(s.err)}
}

// messages is a writer that gets whole messages: nothing of one is held back.
type messages struct{ w *redact.Writer }

func (m messages) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	return n, errors.Join(err, m.w.Flush())
}

// redactQuestion takes secrets out of what a person is asked. What runs, and
// what the answer is bound to, is the question's call as it was made.
func redactQuestion(r *redact.Redactor, q policy.Question) policy.Question {
	q.Call.Args = r.JSON(q.Call.Args)
	for _, text := range []*string{&q.Reason, &q.Command, &q.Dir, &q.Says, &q.Changes, &q.Warning, &q.Allow} {
		*text = r.Text(*text)
	}
	q.Paths, q.Network = slices.Clone(q.Paths), slices.Clone(q.Network)
	for _, texts := range [][]string{q.Paths, q.Network} {
		for i := range texts {
			texts[i] = r.Text(texts[i])
		}
	}
	rules := map[policy.Scope]string{}
	for scope, words := range q.Rules {
		rules[scope] = r.Text(words)
	}
	q.Rules = rules
	changed := slices.Clone(q.Changed)
	for i := range changed {
		c := &changed[i]
		for _, text := range []*string{
			&c.Rule, &c.Was.Said.Description, &c.Was.Said.Schema, &c.Was.Said.AsksFor,
			&c.Now.Said.Description, &c.Now.Said.Schema, &c.Now.Said.AsksFor,
		} {
			*text = r.Text(*text)
		}
	}
	q.Changed = changed
	return q
}
