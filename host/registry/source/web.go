package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/services"
)

const (
	userAgent   = "stockade"
	webDeadline = 5 * time.Minute
)

func fetchWeb(ctx context.Context, ref string, opts Options) (*Candidate, error) {
	o, rest, err := network.ParseOrigin(ref)
	if err != nil {
		return nil, fmt.Errorf("fetch %.200q: %w", ref, err)
	}
	if o.Protocol == network.HTTP && o.Host.Name() != "localhost" && !o.Host.Addr().IsLoopback() {
		return nil, fmt.Errorf("fetch %.200q: over http:// anybody on the way could put another module in its place; use https://", ref)
	}
	u, err := url.Parse(ref)
	if err != nil || u.Fragment != "" || u.Path == "" || strings.HasSuffix(u.Path, "/") {
		return nil, fmt.Errorf("fetch %.200q: it is not the address of a file", ref)
	}
	client, err := opts.client(strings.TrimSuffix(ref, rest))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, webDeadline, &services.Error{Kind: services.Timeout, Err: fmt.Errorf("it was not done within %s", webDeadline)})
	defer cancel()
	var out *Candidate
	err = get(ctx, client, u, func(resp *http.Response) (err error) {
		out, err = candidate(resp.Body, max(resp.ContentLength, 0), ref, opts)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", ref, explain(ctx, err))
	}
	s := *u
	s.Path += SignatureSuffix
	if s.RawPath != "" {
		s.RawPath += SignatureSuffix
	}
	err = get(ctx, client, &s, func(resp *http.Response) (err error) {
		out.Evidence, err = evidence(resp.Body)
		return err
	})
	if err != nil && !errors.Is(err, errMissing) {
		return nil, fmt.Errorf("the signatures %s: %w", &s, explain(ctx, err))
	}
	return out, nil
}

// errMissing is returned for the status 404 or 410.
var errMissing = errors.New("the server does not have it")

// get requests a file and passes the server's response to read.
func get(ctx context.Context, client *http.Client, u *url.URL, read func(*http.Response) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept-Encoding", "identity") // the limits count bytes as they arrive
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch coding := resp.Header.Get("Content-Encoding"); {
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone:
		return errMissing
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("the server answers with status %d (%s)", resp.StatusCode, http.StatusText(resp.StatusCode))
	case coding != "" && !strings.EqualFold(coding, "identity"):
		return fmt.Errorf("the server has compressed it (%.20q), which was not asked for", coding)
	}
	return read(resp)
}

// explain returns err without the addresses of redirects, which may hold tokens.
func explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
