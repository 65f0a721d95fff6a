package door

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/tool"
)

// Children compiles modules of others in processes of their own, which are this
// program started again. So the main function of the program begins with
//
//	if len(os.Args) > 1 && os.Args[1] == sandbox.ChildCommand {
//		os.Exit(sandbox.CompileChild(os.Args[2:]))
//	}
type Children struct{}

// Spawn implements sandbox.Spawner.
func (Children) Spawn(ctx context.Context, c sandbox.Child) (sandbox.Ended, error) {
	c.Args = append([]string{sandbox.ChildCommand}, c.Args...)
	ended, err := jail.RunHelper(ctx, jail.Helper(c))
	return sandbox.Ended(ended), err
}

// jailExec is the host function exec on top of the jail.
type jailExec struct{ known *secret.Redactor }

// Run implements hostmod.Exec.
func (e jailExec) Run(ctx context.Context, grant policy.Grant, cmd hostmod.Command) (hostmod.Outcome, error) {
	out, err := jail.Run(ctx, grant, jail.Command(cmd), e.known)
	switch {
	case errors.Is(err, jail.ErrDenied):
		// The guest says "denied" before it, too.
		err = because{hostmod.ErrDenied, strings.TrimPrefix(err.Error(), jail.ErrDenied.Error()+": ")}
	case errors.Is(err, jail.ErrNotFound):
		err = fmt.Errorf("%w: %w", hostmod.ErrCommandNotFound, err)
	}
	return hostmod.Outcome(out), err
}

// because is an error of a kind, in other words.
type because struct {
	kind error
	text string
}

func (b because) Error() string { return b.text }

func (b because) Unwrap() error { return b.kind }

// guestHTTP is the host function http on top of egress, which is made when the
// first guest makes a request: reading the certificate authorities takes
// longer than most calls.
type guestHTTP struct {
	egress func() (*egress.Egress, error)
}

// Fetch implements hostmod.HTTP.
func (h guestHTTP) Fetch(ctx context.Context, grant policy.Grant, req hostmod.HTTPRequest) (*hostmod.HTTPResponse, error) {
	out, err := h.egress()
	if err != nil {
		return nil, &hostmod.HTTPError{Case: hostmod.HTTPDenied, Err: fmt.Errorf("the network is not configured: %w", err)}
	}
	resp, err := out.Fetch(ctx, grant, egress.Request(req))
	if err == nil {
		answer := hostmod.HTTPResponse(*resp)
		return &answer, nil
	}
	failure := &hostmod.HTTPError{Case: hostmod.HTTPProtocol, Err: err}
	if e, ok := errors.AsType[*egress.Error](err); ok {
		failure.Limit = uint64(e.Limit)
		failure.Case = map[egress.Kind]uint8{
			egress.Denied: hostmod.HTTPDenied, egress.Invalid: hostmod.HTTPInvalid, egress.DNS: hostmod.HTTPDNS,
			egress.Connect: hostmod.HTTPConnect, egress.TLS: hostmod.HTTPTLS, egress.Timeout: hostmod.HTTPTimeout,
			egress.TooLarge: hostmod.HTTPTooLarge, egress.Protocol: hostmod.HTTPProtocol,
		}[e.Kind]
	}
	return nil, failure
}

// hostSecrets is the host function secrets on top of the vault.
type hostSecrets struct{ vault *secret.Vault }

// Placeholders implements hostmod.Secrets.
func (h hostSecrets) Placeholders(granted []tool.Secret) hostmod.Placeholders {
	return placeholders{secret.NewTable(granted, h.vault)}
}

type placeholders struct{ *secret.Table }

// Placeholder implements hostmod.Placeholders.
func (p placeholders) Placeholder(ctx context.Context, name string) (string, error) {
	text, err := p.Table.Placeholder(ctx, name)
	switch {
	case errors.Is(err, secret.ErrNotGranted):
		err = fmt.Errorf("%w: %w", hostmod.ErrDenied, err)
	case errors.Is(err, secret.ErrNotFound):
		err = fmt.Errorf("%w: %w", hostmod.ErrSecretMissing, err)
	}
	return text, err
}
