package hostmod

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
)

const maxSecretName = 1 << 10 // bytes of a name; a longer one is an [abi.Fault]

// secretsPlaceholder is secrets.placeholder. Parameters: name (pointer, length), result pointer.
func secretsPlaceholder(c reply) error {
	name, err := c.mem.String("name", c.u32(0), c.u32(1), maxSecretName)
	if err != nil {
		return err
	}
	text, err := c.world.Placeholder(c.ctx, c.account, name)
	switch {
	case services.KindOf(err) == services.NotFound:
		return c.put(c.failed(secretsMissing)) // this case has no text
	case err != nil:
		return refusal{secretsDenied, err.Error()}
	}
	r := c.record()
	r.bytes(c.guest, c.payload, []byte(text))
	return c.put(r)
}

// Placeholder returns the text that stands for a secret in this call. Errors are for the
// guest; their kind is Denied or NotFound. Details for the person are reported.
func (w *World) Placeholder(ctx context.Context, account *meter.Account, name string) (text string, err error) {
	what := fmt.Sprintf("the secret %.80q", name)
	granted := w != nil && w.Services.Secrets != nil &&
		slices.ContainsFunc(w.Grant.Secrets(), func(s tool.Secret) bool { return s.Name == name })
	if why := w.whyDenied(granted, what); why != "" {
		return "", &services.Error{Kind: services.Denied, Err: errors.New(why)}
	}
	if w.placeholders == nil {
		w.placeholders = w.Services.Secrets.Placeholders(w.Grant.Secrets())
	}
	account.WithoutTurn(func() { text, err = w.placeholders.Placeholder(ctx, name) })
	var warn tool.Progress
	switch kind := services.KindOf(err); {
	case err == nil, kind == services.Denied:
		return text, err
	case kind == services.NotFound:
		warn = tool.Progress{Level: "warn", Message: fmt.Sprintf("the secret %q is not set", name), Hint: tool.ActionHint(tool.HintSetSecret, name)}
	default:
		warn = tool.Progress{Level: "warn", Message: fmt.Sprintf("%s could not be read: %v", what, err)}
		err = &services.Error{Kind: services.Denied, Err: fmt.Errorf("%s could not be read; the person is told why", what)}
	}
	if w.Report != nil {
		w.Report(warn)
	}
	return "", err
}

var secretsResult = layout{size: 16, align: 4, payload: 4, errorText: 8} // of a result<string, error>

// The cases of the variant error of secrets, see wit/.
const (
	secretsDenied = iota
	secretsMissing
)
