package hostmod

import (
	"fmt"
	"slices"

	"github.com/stockade-dev/stockade/host/effect"
	"github.com/stockade-dev/stockade/host/tool"
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
	granted := g.world != nil && g.world.Services.Secrets != nil &&
		slices.ContainsFunc(g.world.Grant.Secrets(), func(s tool.Secret) bool { return s.Name == name })
	if why := g.denied(granted, what); why != "" {
		return secretsResult.fail(g, out, secretsDenied, why)
	}
	if g.world.placeholders == nil {
		g.world.placeholders = g.world.Services.Secrets.Placeholders(g.world.Grant.Secrets())
	}
	var text string
	g.account.Away(func() { text, err = g.world.placeholders.Placeholder(g.ctx, name) })
	switch kind := effect.KindOf(err); {
	case kind == effect.NotFound:
		if g.world.Report != nil {
			g.world.Report(tool.Progress{Level: "warn", Message: fmt.Sprintf("the secret %q is not set", name), Hint: tool.Do(tool.HintSetSecret, name)})
		}
		return secretsResult.put(g, out, secretsResult.failed(secretsMissing)) // which has no text
	case kind == effect.Denied:
		return secretsResult.fail(g, out, secretsDenied, err.Error())
	case err != nil:
		if g.world.Report != nil {
			g.world.Report(tool.Progress{Level: "warn", Message: fmt.Sprintf("%s could not be read: %v", what, err)})
		}
		return secretsResult.fail(g, out, secretsDenied, what+" could not be read; the person is told why")
	}
	r := secretsResult.record()
	if err := r.bytes(g, secretsResult.payload, []byte(text)); err != nil {
		return err
	}
	return secretsResult.put(g, out, r)
}

// result<string, error>
var secretsResult = layout{size: 16, align: 4, payload: 4, errorText: 8}

// The cases of error.
const (
	secretsDenied = iota
	secretsMissing
)
