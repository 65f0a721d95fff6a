package egress

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/network"
)

// maxURLBytes limits a URL, a way to send data out, in bytes; a longer one is an error.
const maxURLBytes = 8 << 10

// target is a URL that was parsed once for all purposes: the same host is decided, dialled,
// authenticated and requested.
type target struct {
	network.Origin
	url *url.URL // parsed URL with the normalized host, and without a fragment
}

// parseTarget parses http[s]://HOST[:PORT][/...]. It refuses everything that two parsers could
// read differently: user names, backslashes, white space, control characters, invalid hosts.
func parseTarget(s string) (target, error) {
	if len(s) > maxURLBytes {
		return target{}, fmt.Errorf("URL: it has %d bytes, more than %d", len(s), maxURLBytes)
	}
	t, err := parseURL(s)
	if err != nil {
		return target{}, fmt.Errorf("URL %q: %w", shorten(s, 200), err)
	}
	return t, nil
}

func parseURL(s string) (t target, err error) {
	var rest string
	if t.Origin, rest, err = network.ParseOrigin(s); err != nil {
		return t, err
	}
	if err := checkReference(rest); err != nil {
		return t, err
	}
	rest, _, _ = strings.Cut(rest, "#") // a fragment is not sent
	authority := t.authority()
	t.url, err = url.Parse(string(t.Protocol) + "://" + authority + rest)
	if err != nil || t.url.Host != authority || t.url.User != nil || t.url.Opaque != "" || t.url.Scheme != string(t.Protocol) {
		return t, errors.New("what follows the host is not a path and a query")
	}
	return t, nil
}

// checkReference refuses characters that a URL must escape and that some programs misread.
func checkReference(s string) error {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\\\"<>^`", c) >= 0 {
			return fmt.Errorf("it holds %q, which has to be escaped", c)
		}
	}
	return nil
}

// authority returns the host, in brackets if it is an IPv6 address, and the port unless it is the
// default of the protocol.
func (t target) authority() string {
	own := t.Protocol == network.HTTP && t.Port == 80 || t.Protocol == network.HTTPS && t.Port == 443
	switch {
	case !own:
		return net.JoinHostPort(t.Host.String(), strconv.Itoa(int(t.Port)))
	case t.Host.Addr().Is6():
		return "[" + t.Host.String() + "]"
	}
	return t.Host.String()
}

// redirect returns the target of a redirect from t to location, which may be relative. A redirect
// from https to http is an error.
func (t target) redirect(location string) (target, error) {
	if len(location) > maxURLBytes {
		return target{}, fmt.Errorf("it has %d bytes, more than %d", len(location), maxURLBytes)
	}
	if err := checkReference(location); err != nil {
		return target{}, err
	}
	ref, err := url.Parse(location)
	if err != nil {
		return target{}, errors.New("it is not a URL")
	}
	next, err := parseTarget(t.url.ResolveReference(ref).String())
	if err != nil {
		return target{}, err
	}
	if t.Protocol == network.HTTPS && next.Protocol != network.HTTPS {
		return target{}, errors.New("it leads from https to http")
	}
	return next, nil
}
