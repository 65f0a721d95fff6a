package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/oci"
	"github.com/stockade-dev/stockade/host/registry/oci/credential"
	"github.com/stockade-dev/stockade/host/registry/source"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/settings"
	"github.com/stockade-dev/stockade/host/tool"
)

// fetch fetches a module by its reference. locked is set for a module that a project names: it
// is fetched without credentials, and from an address inside a network only if the person's
// own rules allow it; see RATIONALE, "Why is nothing of a lockfile fetched before the yes, and
// nothing with credentials?"
func (a *app) fetch(ctx context.Context, ref string, locked bool) (*source.Candidate, error) {
	if ok, why, from := a.Ceiling.PermitsFrom(registry.PlaceOf(ref)); !ok { // a request would already give something away
		return nil, &exitErr{code: exitDenied, message: fmt.Sprintf("%s is not fetched: %s: %s", ref, why, from)}
	}
	out, rules, err := a.fetchEgress()
	if err != nil {
		return nil, err
	}
	shown := time.Now()
	credentials := oci.Credentials(a.credentials)
	if locked {
		credentials = nil
	}
	done := a.noteIfSlow("fetching " + ref + " ...")
	c, err := source.Fetch(ctx, ref, source.Options{
		Client: out.ClientFactory(rules, a.Ceiling, !locked), Credentials: credentials,
		Warn: func(text string) { a.warn(text, "") },
		Progress: func(done, total int64) {
			if now := time.Now(); !a.flags.quiet && now.Sub(shown) > time.Second {
				shown = now
				a.s.note("fetched %s of %s ...", humanize.Bytes(done), humanize.Bytes(total))
			}
		},
	})
	done()
	if err == nil {
		return c, nil
	}
	fetchErr := fetchError(ref, err)
	if denial, ok := errors.AsType[*network.Denial](err); ok && locked && denial.AllowRule != nil {
		fetchErr.hint = "if you trust that host with this: stockade tool sync" + a.fetchFlags() + " " + formatFlag("--allow-net", denial.AllowRule.String())
	}
	return nil, fetchErr
}

// fetchEgress returns the egress for fetching modules, and the network rules. Fetching may
// reach the server that a person names and, for tokens and redirects, the hosts that the rules
// allow.
func (a *app) fetchEgress() (*egress.Egress, []network.Rule, error) {
	rules, err := a.NetRules(a.flags.allowNet)
	if err != nil {
		return nil, nil, err
	}
	out, err := a.egress()
	return out, rules, err
}

// credentials finds the login for a registry in the files of Docker and podman, in the home
// directory of the user's account. HOME does not count.
func (a *app) credentials(ctx context.Context, host string) (credential.Login, credential.Search) {
	home := accountHome
	if home == nil {
		home = settings.AccountHome
	}
	return credential.Finder{Dir: home(), Env: a.s.env, InWorkspace: func(path string) bool {
		_, in := settings.Within(path, a.Workspace)
		return in
	}}.Login(ctx, host)
}

// provenance holds facts about a fetched module.
type provenance struct {
	Manifest string `json:"manifest,omitempty"` // digest of the OCI manifest; empty: it came otherwise
	SignedBy string `json:"signed_by"`          // text about the signer, or the error of checking the signatures
}

// loadModule reads the module in a file, or fetches that of a reference or an OCI layout. The
// second result is nil for a file. Bad signatures are no error: SignedBy describes them.
func (a *app) loadModule(ctx context.Context, ref string) (*tool.Module, *provenance, error) {
	if !strings.Contains(ref, "://") && !oci.IsLayout(oci.ParseLayout(ref).Dir) {
		mod, err := readModule(ref)
		return mod, nil, err
	}
	c, err := a.fetch(ctx, ref, false)
	r, rulesErr := a.reviewer()
	if err := cmp.Or(err, rulesErr); err != nil {
		return nil, nil, err
	}
	mod, v, err := r.Module("", c)
	if err != nil {
		return mod, &provenance{c.ManifestDigest, err.Error()}, nil
	}
	return mod, &provenance{c.ManifestDigest, signedBy(v)}, nil
}

// fetchError converts the error of a fetch or a push to one that names ref, with a hint if one
// is known.
func fetchError(ref string, err error) *exitErr {
	out := &exitErr{code: exitError, message: err.Error()}
	if !strings.Contains(out.message, ref) {
		out.message = ref + ": " + out.message
	}
	if denial, ok := errors.AsType[*network.Denial](err); ok {
		out.code = exitDenied
		if denial.AllowRule != nil {
			out.hint = "if you trust that host with this: " + formatFlag("--allow-net", denial.AllowRule.String())
		}
		return out
	}
	failed, _ := errors.AsType[*services.Error](err)
	switch {
	case failed == nil:
	case failed.Hint != "":
		out.hint = failed.Hint
	case failed.Kind == services.DNS, failed.Kind == services.Connect:
		out.hint = "check the host and its port; modules that you have added already need no network"
	case failed.Kind == services.TLS:
		out.hint = "check that it is the right host; a registry on another machine needs https and a valid certificate"
	}
	return out
}

// review checks a module before a person is asked about it.
func (a *app) review(ctx context.Context, q registry.Request) (*registry.Review, error) {
	r, err := a.reviewer()
	if err != nil {
		return nil, err
	}
	done := a.noteIfSlow("checking " + q.Candidate.Source + " ...")
	a.compilingForReview.Store(true)
	q.AllowLarge = a.flags.large
	review, err := r.Review(ctx, q)
	a.compilingForReview.Store(false)
	done()
	if _, ok := errors.AsType[*admit.LargeError](err); ok {
		return nil, &exitErr{code: exitError, message: err.Error(), hint: "--large accepts it; compiling it takes a minute or two"}
	}
	if refused, ok := errors.AsType[*registry.RefusedError](err); ok {
		return nil, &exitErr{code: exitDenied, message: refused.Error(), hint: refused.Hint}
	}
	if err == nil {
		a.s.warnOptionArgs(review.Record.Manifest)
	}
	return review, err
}

// isIntact reports whether the store has the module's bytes as they were added. If not, adding
// the module again repairs it.
func (a *app) isIntact(r store.Record) bool {
	_, err := a.moduleStore().Module(r).Read()
	return err == nil
}

// noteIfSlow prints text as a note after a second, unless done is called before, or --quiet is
// set.
func (a *app) noteIfSlow(text string) (done func()) {
	if a.flags.quiet {
		return func() {}
	}
	over, noted := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(noted)
		select {
		case <-over:
		case <-time.After(time.Second):
			a.s.note("%s", text)
		}
	}()
	return func() { close(over); <-noted }
}
