package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/registry/oci/credential"
	"github.com/stockade-dev/stockade/host/services"
)

// Credentials finds the login of a registry, HOST or HOST:PORT; the zero Login where
// there is none. [credential.Finder.Login] is one.
type Credentials func(ctx context.Context, host string) (credential.Login, credential.Search)

// Client fetches from and pushes to one registry at a time.
type Client struct {
	// HTTP is one of package egress that follows redirects.
	HTTP *http.Client
	// Credentials is asked when the registry of a reference wants a login. Nil is
	// anonymous, which is right wherever not a person has named the registry.
	Credentials Credentials
	// Progress is told how many bytes of the module have arrived; nil: nobody is.
	Progress func(done, total int64)
	// Warn is told why a pull goes on without a login; nil: nobody is.
	Warn func(text string)

	deadline time.Duration // of a pull or a push; 5 minutes; only tests set it
}

const deadline = 5 * time.Minute

// withDeadline bounds the time of a pull or a push.
func (c *Client) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	most := cmp.Or(c.deadline, deadline)
	return context.WithTimeoutCause(ctx, most, &services.Error{Kind: services.Timeout, Err: fmt.Errorf("it was not done within %s", most)})
}

func (c *Client) repository(ref Reference) *remote.Repository {
	origin, _, _ := network.ParseOrigin(ref.Base()) // that of no host if it is no valid reference
	return &remote.Repository{
		Reference:            registry.Reference{Registry: ref.Host, Repository: ref.Path},
		PlainHTTP:            ref.usesPlainHTTP(),
		Client:               &session{http: c.HTTP, ref: ref, origin: origin, credentials: c.Credentials, warn: c.Warn},
		MaxMetadataBytes:     maxListBytes,
		ReferrerListMaxPages: 4,
		SkipReferrersGC:      true, // few registries let their users delete
	}
}

// maxTags limits how many tags of a repository are listed.
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

// explain makes an error out of what a library says: what went wrong, without the
// addresses of servers that a registry has redirected to, which may hold tokens.
func explain(ctx context.Context, to *remote.Repository, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*services.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		said := http.StatusText(e.StatusCode)
		if len(e.Errors) > 0 {
			said = shortLine(e.Errors[0].Code + " " + e.Errors[0].Message)
		}
		switch e.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return fmt.Errorf("the registry does not permit it (%d, %s); if it needs a login, or another one, make that with docker login%s", e.StatusCode, said, to.Client.(*session).searchNote())
		case http.StatusNotFound:
			return fmt.Errorf("the registry does not have it (%s); see whether the name and the tag are right", said)
		}
		return fmt.Errorf("the registry answers with status %d (%s)", e.StatusCode, said)
	}
	if errors.Is(err, errdef.ErrNotFound) {
		return fmt.Errorf("%w: the registry does not have it; see whether the name and the tag are right", errdef.ErrNotFound)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// shortLine makes one short line of what a registry says.
func shortLine(s string) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, " ")))
	if runes := []rune(s); len(runes) > 200 {
		return string(runes[:199]) + "…"
	}
	return s
}
