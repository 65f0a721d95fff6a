package door

import (
	"context"
	"errors"

	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/tool"
)

// minKeyBytes is how long the key of a provider is at least. What is shorter is a
// word for a local server, such as "ollama", and stands in ordinary text.
const minKeyBytes = 12

// Know takes the key of a provider out of whatever is recorded, shown or sent.
func (d *Door) Know(key string) {
	if len(key) >= minKeyBytes {
		d.opts.Known.Add(key)
	}
}

// learn reads the secrets that the tools of a catalog ask for, so that they are
// known before anything that may hold one is shown or recorded, and a passphrase
// is asked for before a turn and not in the middle of one. Where no tool asks for
// any, nothing is opened.
func (d *Door) learn(ctx context.Context, catalog *tool.Catalog) {
	if d.opts.Secrets == nil {
		return
	}
	seen := map[string]bool{} // names, and what was said
	for _, name := range catalog.Names() {
		e, _ := catalog.Find(name)
		for _, s := range e.Capabilities.Secrets {
			if seen[s.Name] {
				continue
			}
			seen[s.Name] = true
			_, err := d.opts.Secrets.Get(ctx, s.Name)
			if err != nil && !errors.Is(err, secret.ErrNotFound) && !seen[err.Error()] {
				seen[err.Error()] = true // one reason can hold for all of them
				d.opts.Note("warning: a secret cannot be read: %v", err)
			}
		}
	}
}
