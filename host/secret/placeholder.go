package secret

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
)

// prefix begins every placeholder. Random characters follow.
const prefix = "stockade-secret-"

// errMisplaced is wrapped by the error if a placeholder is where no value may go. Then nothing
// may be sent.
var errMisplaced = errors.New("a placeholder of a secret is misplaced")

// Table holds the placeholders of one call, and is the only way from a placeholder to its value.
// It ends with the call: no other table knows its placeholders. It is safe for concurrent use.
//
// A caller that sends a request must first check that the host is granted. It then sends the
// headers that [Table.Fill] returns. It must follow redirects itself, with the headers before
// Fill: a client that follows redirects by itself would send values to other hosts. See
// RATIONALE, "Why does a guest get a placeholder, and not the secret?"
type Table struct {
	granted map[string]tool.Secret // secrets of the call, by name
	get     func(ctx context.Context, name string) (Record, error)

	mu            sync.Mutex // guards byPlaceholder
	byPlaceholder map[string]boundSecret
}

// boundSecret is the secret behind a placeholder, with its hosts and its header.
type boundSecret struct {
	name   string
	value  Value
	hosts  []string // hosts to which the value may be sent, in normal form; empty: none
	header string   // name of the only header that may carry the value
}

// NewTable returns the table of a call to which the secrets are granted. get returns the record
// of a name, like [Vault.Get].
func NewTable(granted []tool.Secret, get func(ctx context.Context, name string) (Record, error)) *Table {
	t := &Table{granted: map[string]tool.Secret{}, get: get, byPlaceholder: map[string]boundSecret{}}
	for _, s := range granted {
		t.granted[s.Name] = s
	}
	return t
}

// Placeholder implements [services.Placeholders]. Each call returns a new placeholder.
func (t *Table) Placeholder(ctx context.Context, name string) (string, error) {
	asked, ok := t.granted[name]
	if !ok {
		return "", denied("the secret %.80q is not granted to this call", name)
	}
	r, err := t.get(ctx, name)
	switch {
	case errors.Is(err, ErrNotFound):
		return "", &services.Error{Kind: services.NotFound, Err: err}
	case err != nil:
		return "", err
	}
	u, err := bindSecret(asked, r)
	if err != nil {
		return "", err
	}
	placeholder := prefix + strings.ToLower(rand.Text())
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.byPlaceholder) >= maxPlaceholders {
		return "", denied("the call has asked for %d placeholders of secrets, which is the limit", maxPlaceholders)
	}
	t.byPlaceholder[placeholder] = u
	return placeholder, nil
}

// maxPlaceholders limits the placeholders of a call; it is denied more.
const maxPlaceholders = 1024

func denied(format string, args ...any) error {
	return &services.Error{Kind: services.Denied, Err: fmt.Errorf(format, args...)}
}

// bindSecret returns a secret with its hosts and its header. If both the person and the tool have
// named hosts, only those that both named count; if there are none, or if the headers differ, it
// returns an error.
func bindSecret(asked tool.Secret, r Record) (boundSecret, error) {
	u := boundSecret{name: r.Name, value: r.Value, hosts: r.Hosts, header: cmp.Or(r.Header, asked.Header, DefaultHeader)}
	switch {
	case len(u.hosts) == 0:
		u.hosts = asked.Hosts
	case len(asked.Hosts) > 0:
		u.hosts = slices.DeleteFunc(slices.Clone(u.hosts), func(h string) bool { return !slices.Contains(asked.Hosts, h) })
		if len(u.hosts) == 0 {
			return u, denied("the secret %q is bound to %s, but the tool wants it for %s",
				r.Name, strings.Join(r.Hosts, ", "), strings.Join(asked.Hosts, ", "))
		}
	}
	if asked.Header != "" && !strings.EqualFold(u.header, asked.Header) {
		return u, denied("the secret %q is bound to the header %s, but the tool wants it in %s",
			r.Name, u.header, asked.Header)
	}
	return u, nil
}

// schemes may precede a placeholder in the header Authorization, followed by one space.
var schemes = []string{"basic", "bearer", "token"}

// header returns the value of a header with its placeholder replaced. host is in the form of
// [hostOf]. The placeholder must stand alone, except after a known scheme in [DefaultHeader].
// Otherwise a guest could choose the text beside a secret, and so which part of the secret is
// cut off if a server repeats only so many bytes; a part of a secret is not recognised.
func (t *Table) header(host, name, value string) (string, error) {
	if !strings.Contains(value, prefix) {
		return value, nil
	}
	normal, err := tool.NormalHost(host)
	if err != nil || normal != host {
		return "", fmt.Errorf("%w: the host %.80q is not in its normal form", errMisplaced, host)
	}
	before, placeholder := "", value
	if i := strings.IndexByte(value, ' '); i > 0 && strings.EqualFold(name, DefaultHeader) && slices.Contains(schemes, strings.ToLower(value[:i])) {
		before, placeholder = value[:i+1], value[i+1:]
	}
	if rest, ok := strings.CutPrefix(placeholder, prefix); !ok || len(rest) > placeholderRandomLen {
		return "", fmt.Errorf("%w: in the header %.80q it must stand alone, or in %s after one of %v and a space; everything else must be part of the secret",
			errMisplaced, name, DefaultHeader, schemes)
	}
	t.mu.Lock()
	u, ok := t.byPlaceholder[placeholder]
	t.mu.Unlock()
	switch {
	case !ok:
		return "", fmt.Errorf("%w: the header %.80q holds one that this call does not have", errMisplaced, name)
	case !strings.EqualFold(name, u.header):
		return "", fmt.Errorf("%w: the secret %s goes into the header %s, and not into %.80q", errMisplaced, u.name, u.header, name)
	case !slices.Contains(u.hosts, host):
		return "", fmt.Errorf("%w: the secret %s is %s, and not for %s", errMisplaced, u.name, forHosts(u.hosts), host)
	}
	filled := before + u.value.Reveal()
	if i := strings.IndexFunc(filled, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }); i >= 0 {
		return "", fmt.Errorf("%w: with its value the header %.80q would hold a line end or another control character", errMisplaced, name)
	}
	return filled, nil
}

// placeholderRandomLen is the number of characters of a placeholder after prefix: a [rand.Text]
// has 128 bits in base 32.
const placeholderRandomLen = 26

func forHosts(hosts []string) string {
	if len(hosts) == 0 {
		return "bound to no host, neither by the person who has set it nor by the tool"
	}
	return "for " + strings.Join(hosts, ", ")
}

// checkNoPlaceholder returns an error that wraps errMisplaced if text holds the prefix of a
// placeholder, plain or percent-encoded. text is a part of a request in which no value may go;
// what names this part.
func checkNoPlaceholder(what, text string) error {
	if strings.Contains(text, prefix) {
		return fmt.Errorf("%w: the %s holds one; it goes into a header", errMisplaced, what)
	}
	if plain, err := url.QueryUnescape(text); err == nil && strings.Contains(plain, prefix) {
		return fmt.Errorf("%w: the %s holds one, percent-encoded; it goes into a header", errMisplaced, what)
	}
	return nil
}

// Fill returns the headers of a request, with values in place of placeholders. It returns an
// error if a placeholder is in the URL, the body or the name of a header; if it is unknown, or
// for another host or header; or if others could read the request on its way. After an error the
// request must not be sent. Fill does not change its arguments.
func (t *Table) Fill(u *url.URL, headers map[string][]string, body []byte) (map[string][]string, error) {
	if err := errors.Join(checkNoPlaceholder("URL", u.String()), checkNoPlaceholder("body", string(body))); err != nil {
		return nil, err
	}
	out := maps.Clone(headers)
	for name, values := range headers {
		if err := checkNoPlaceholder("name of a header", name); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, prefix) }) {
			continue
		}
		host, err := hostOf(u)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errMisplaced, err)
		}
		filled := make([]string, len(values))
		for i, v := range values {
			if filled[i], err = t.header(host, name, v); err != nil {
				return nil, err
			}
		}
		out[name] = filled
	}
	return out, nil
}

// hostOf returns the host of a URL in the form of the bindings of secrets: NAME, or NAME:PORT if
// the port is not 443. It returns an error if others could read the request on its way: only
// https, and http to this machine, are allowed.
func hostOf(u *url.URL) (string, error) {
	port := u.Port()
	switch {
	case u.User != nil:
		return "", errors.New("the URL holds a user or a password")
	case u.Scheme == "https":
	case u.Scheme == "http" && port == "443":
		return "", errors.New("no secret is sent over \"http\" to port 443") // its host would have the same form as that of https
	case u.Scheme == "http" && IsLoopback(u.Hostname()):
		if port == "" {
			port = "80"
		}
	default:
		return "", fmt.Errorf("no secret is sent over %.20q", u.Scheme)
	}
	name := u.Hostname()
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	if port != "" {
		name += ":" + port
	}
	return tool.NormalHost(name)
}

// IsLoopback reports whether a host of a URL is this machine.
func IsLoopback(name string) bool {
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback() || strings.EqualFold(name, "localhost")
}
