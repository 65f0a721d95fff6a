package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/sdk/go/nearest"
)

// modelCheckTimeout limits the wait for a server's models; after it, the model is used
// unchecked.
const modelCheckTimeout = 3 * time.Second

// model lists the profiles, or selects the model for the next turns: that of a profile, a
// named model of a profile, or another model of the provider in use.
func (t *conversation) model(ctx context.Context, arg string) error {
	args := strings.Fields(arg)
	profiles := t.a.Config.ProfileNames()
	switch {
	case len(args) == 0:
		return t.showModels()
	case len(args) > 2:
		return errors.New("use /model PROFILE, /model MODEL or /model PROFILE MODEL")
	case slices.Contains(profiles, args[0]):
		p, err := t.a.provider(ctx, args[0])
		if err != nil {
			return err
		}
		if len(args) == 2 {
			t.setModelName(p, args[1])
		}
		return t.useProvider(*p)
	case len(args) == 2:
		return fmt.Errorf("there is no profile %q%s; there is %s", humanize.Clip(args[0], maxShownName), nearest.Hint(args[0], profiles), strings.Join(profiles, ", "))
	}
	p := t.provider
	t.setModelName(&p, args[0])
	if err := t.checkListed(ctx, p, args[0], profiles); err != nil {
		return err
	}
	return t.useProvider(p)
}

// setModelName sets the model of a provider, and drops what p holds about the previous model.
func (t *conversation) setModelName(p *door.Provider, model string) {
	if p.Client.Model != model {
		p.Client.Model, p.Client.ContextTokens = model, 0
		p.Price = t.a.price(model)
	}
}

// checkListed returns an error if the provider cannot be asked, has no server, or has one that
// lists models but not this one: then the word is probably a mistyped profile. A server that
// lists no models, or does not answer, is no error. The error may suggest one of profiles.
func (t *conversation) checkListed(ctx context.Context, p door.Provider, model string, profiles []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, modelCheckTimeout, fmt.Errorf("no answer for %s", modelCheckTimeout))
	defer cancel()
	found, err := t.a.door().Models(ctx, p)
	if _, failed := errors.AsType[*llm.ProviderError](err); failed || ctx.Err() != nil {
		err = nil // the next turn reports it
	}
	if err != nil {
		return t.a.modelError(&p, err)
	}
	if found.URL == "" || len(found.Models) > 0 && !slices.Contains(found.Models, model) {
		return fmt.Errorf("there is no profile %q, and %s does not list such a model%s; /model shows the profiles, and /model PROFILE MODEL asks for one that is not listed",
			humanize.Clip(model, maxShownName), found.Name, nearest.Hint(model, append(slices.Clone(profiles), found.Models...)))
	}
	return nil
}

func (t *conversation) useProvider(p door.Provider) error {
	if err := t.Use(p); err != nil {
		return t.a.modelError(&p, err)
	}
	t.provider = p
	model := cmp.Or(p.Client.Model, "its own model")
	if t.Provider == door.ProviderOffline {
		model = "a small planner for demonstrations"
	}
	fmt.Fprintf(t.a.s.out, "The next turns ask %s: %s, %s.\n", p.Profile, t.Provider, model)
	return nil
}

// showModels lists the profiles. It marks the profile in use, with its model.
func (t *conversation) showModels() error {
	w := table.New(table.Fixed(""), table.Fixed("PROFILE"), table.Fixed("PROVIDER"), table.Fixed("MODEL"))
	for _, name := range t.a.Config.ProfileNames() {
		profile, _ := t.a.Config.ResolveProfile(name) // the name is in the list of names
		mark, provider, model := "", profile.Provider, profile.Name
		if name == t.provider.Profile {
			mark, provider, model = "*", t.Provider, t.provider.Client.Model
		}
		w.Row(mark, name, provider, cmp.Or(model, "-"))
	}
	return t.a.s.table(w)
}
