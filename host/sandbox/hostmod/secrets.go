package hostmod

import (
	"fmt"

	"github.com/stockade-dev/stockade/host/effect"
)

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
	if why := g.denied(g.world != nil && g.world.mayUse(name), what); why != "" {
		return secretsResult.fail(g, out, secretsDenied, why)
	}
	var text string
	g.away(func() { text, err = g.world.Placeholders().Placeholder(g.ctx, name) })
	switch kind := effect.KindOf(err); {
	case kind == effect.NotFound:
		if g.world.Unset != nil {
			g.world.Unset(name)
		}
		r := secretsResult.record() // this case has no text
		r.u8(0, 1)
		r.u8(secretsResult.payload, secretsMissing)
		return secretsResult.put(g, out, r)
	case kind == effect.Denied:
		return secretsResult.fail(g, out, secretsDenied, err.Error())
	case err != nil:
		g.world.warn(fmt.Sprintf("%s could not be read: %v", what, err))
		return secretsResult.fail(g, out, secretsDenied, what+" could not be read; the person is told why")
	}
	r := secretsResult.record()
	if err := r.bytes(g, secretsResult.payload, []byte(text)); err != nil {
		return err
	}
	return secretsResult.put(g, out, r)
}

// mayUse reports whether a secret is granted, and kept by somebody.
func (w *World) mayUse(name string) bool {
	for _, s := range w.Grant.Secrets() {
		if s.Name == name {
			return w.Services.Secrets != nil
		}
	}
	return false
}

// Placeholders are those of the call. Without Services.Secrets there are none,
// and it is nil.
func (w *World) Placeholders() effect.Placeholders {
	if w.placeholders == nil && w.Services.Secrets != nil {
		w.placeholders = w.Services.Secrets.Placeholders(w.Grant.Secrets())
	}
	return w.placeholders
}

func (w *World) warn(message string) {
	if w.Log != nil {
		w.Log("warn", message)
	}
}

// result<string, error>
var secretsResult = layout{size: 16, align: 4, payload: 4, errorText: 8}

// The cases of error.
const (
	secretsDenied = iota
	secretsMissing
)
