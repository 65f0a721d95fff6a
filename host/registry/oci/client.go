package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/registry/oci/credential"
	"github.com/stockade-dev/stockade/host/services"
)

// Credentials finds the login of a registry. host is HOST or HOST:PORT. The zero Login means
// that there is none. [credential.Finder.Login] is such a function.
type Credentials func(ctx context.Context, host string) (credential.Login, credential.Search)

// Client fetches from and pushes to one registry at a time.
type Client struct {
	HTTP *http.Client // a client of package egress that follows redirects
	// Credentials is asked when the registry of a reference wants a login. Nil: requests
	// are anonymous, as they should be unless a person has named the registry.
	Credentials Credentials
	// Progress is called with the number of bytes of the module that have arrived; may be nil.
	Progress func(done, total int64)
	Warn     func(text string) // called with the reason why a pull goes on without a login; may be nil

	deadline time.Duration // time for a pull or a push; zero: 5 minutes; only tests set it
}

const deadline = 5 * time.Minute

func (c *Client) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := cmp.Or(c.deadline, deadline)
	return context.WithTimeoutCause(ctx, limit, &services.Error{Kind: services.Timeout, Err: fmt.Errorf("it was not done within %s", limit)})
}

func (c *Client) repository(ref Reference) *remote.Repository {
	origin, _, _ := network.ParseOrigin(ref.Base()) // the zero origin for an invalid reference; it matches no host
	return &remote.Repository{
		Reference:            registry.Reference{Registry: ref.Host, Repository: ref.Path},
		PlainHTTP:            ref.usesPlainHTTP(),
		Client:               &session{http: c.HTTP, ref: ref, origin: origin, credentials: c.Credentials, warn: c.Warn},
		MaxMetadataBytes:     maxListBytes,
		ReferrerListMaxPages: 4,
		SkipReferrersGC:      true, // few registries let their users delete
	}
}

// maxTags limits the number of tags of a repository. More are an error.
const maxTags = 10_000

// Tags returns the tags of the repository of a reference.
func (c *Client) Tags(ctx context.Context, ref Reference) (tags []string, err error) {
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	from := c.repository(ref)
	err = from.Tags(ctx, "", func(page []string) error {
		if tags = append(tags, page...); len(tags) > maxTags {
			return fmt.Errorf("there are more than %d", maxTags)
		}
		return nil
	})
	return tags, explain(ctx, from, err)
}

// explain returns an error of oras in our words. It leaves out the addresses of servers that
// the registry has redirected to, because they may hold tokens.
func explain(ctx context.Context, to *remote.Repository, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*services.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		detail := http.StatusText(e.StatusCode)
		if len(e.Errors) > 0 {
			detail = shortLine(e.Errors[0].Code + " " + e.Errors[0].Message)
		}
		switch e.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return fmt.Errorf("the registry does not permit it (%d, %s); if it needs a login, or another one, make that with docker login%s", e.StatusCode, detail, to.Client.(*session).searchNote())
		case http.StatusNotFound:
			return fmt.Errorf("the registry does not have it (%s); see whether the name and the tag are right", detail)
		}
		return fmt.Errorf("the registry answers with status %d (%s)", e.StatusCode, detail)
	}
	if errors.Is(err, errdef.ErrNotFound) {
		return fmt.Errorf("%w: the registry does not have it; see whether the name and the tag are right", errdef.ErrNotFound)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// shortLine returns a text from the registry as one printable line of at most 200 characters.
func shortLine(s string) string { return services.Line(s, 200) }
