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

// maxURLBytes bounds a URL: it is a way to send data out.
const maxURLBytes = 8 << 10

// target is a URL that was parsed, once, for everybody: what is decided on is
// what is dialled, authenticated and asked for.
type target struct {
	network.Origin
	url *url.URL // with the host in its one form, and without a fragment
}

// parseTarget reads http[s]://HOST[:PORT][/...]. What two parsers could read in
// two ways is refused: user names, backslashes, white space, control
// characters, a host that is no host.
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

// checkReference refuses characters that have to be escaped in a URL and that
// some program takes for something else.
func checkReference(s string) error {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\\\"<>^`", c) >= 0 {
			return fmt.Errorf("it holds %q, which has to be escaped", c)
		}
	}
	return nil
}

// authority is the host in brackets if it needs them, and the port if it is
// not the protocol's own.
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

// redirect returns where an answer sends its reader.
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
