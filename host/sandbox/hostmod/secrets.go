package hostmod

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/stockade-dev/stockade/host/tool"
)

// Secrets makes the placeholders of calls.
type Secrets interface {
	// Placeholders returns those of a new call that was granted these secrets.
	Placeholders(granted []tool.Secret) Placeholders
}

// Placeholders are those of one call: what stands for a value inside the guest,
// and the only way from there to the value. They are safe for concurrent use.
type Placeholders interface {
	// Placeholder returns a text that stands for a secret. ErrDenied,
	// ErrSecretMissing; the text of any other error is for the person.
	Placeholder(ctx context.Context, name string) (string, error)
	// Fill returns the headers of a request with the values in the place of
	// placeholders, or an error if one is where no value may go.
	Fill(u *url.URL, headers map[string][]string, body []byte) (map[string][]string, error)
}

// ErrSecretMissing is wrapped by Placeholders if nobody has set the secret.
var ErrSecretMissing = errors.New("the secret is not set")

// maxSecretName is how long a name may be before it is looked at.
const maxSecretName = 1 << 10

// secretsPlaceholder is secrets.placeholder.
//
// Parameters: name (pointer, length), result pointer.
func secretsPlaceholder(g *guest) error {
	out := g.u32(2)
	name, err := g.mem.String("name", g.u32(0), g.u32(1), maxSecretName)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("the secret %.80q", name)
	if why := g.denied(g.call != nil && g.call.mayUse(name), what); why != "" {
		return secretsResult.fail(g, out, secretsDenied, why)
	}
	var text string
	g.away(func() { text, err = g.call.Placeholders().Placeholder(g.ctx, name) })
	switch {
	case errors.Is(err, ErrSecretMissing):
		if g.call.Unset != nil {
			g.call.Unset(name)
		}
		r := secretsResult.record() // this case has no text
		r.u8(0, 1)
		r.u8(secretsResult.payload, secretsMissing)
		return secretsResult.put(g, out, r)
	case errors.Is(err, ErrDenied):
		return secretsResult.fail(g, out, secretsDenied, err.Error())
	case err != nil:
		g.call.warn(fmt.Sprintf("%s could not be read: %v", what, err))
		return secretsResult.fail(g, out, secretsDenied, what+" could not be read; the person is told why")
	}
	r := secretsResult.record()
	if err := r.bytes(g, secretsResult.payload, []byte(text)); err != nil {
		return err
	}
	return secretsResult.put(g, out, r)
}

// mayUse reports whether a secret is granted, and kept by somebody.
func (c *Call) mayUse(name string) bool {
	for _, s := range c.Grant.Secrets() {
		if s.Name == name {
			return c.Services.Secrets != nil
		}
	}
	return false
}

// Placeholders are those of the call. Without Services.Secrets there are none,
// and it is nil.
func (c *Call) Placeholders() Placeholders {
	if c.placeholders == nil && c.Services.Secrets != nil {
		c.placeholders = c.Services.Secrets.Placeholders(c.Grant.Secrets())
	}
	return c.placeholders
}

func (c *Call) warn(message string) {
	if c.Log != nil {
		c.Log("warn", message)
	}
}

// result<string, error>
var secretsResult = layout{size: 16, align: 4, payload: 4, errorText: 8}

// The cases of error.
const (
	secretsDenied = iota
	secretsMissing
)
