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

// prefix begins every placeholder. Behind it is chance.
const prefix = "stockade-secret-"

// errMisplaced: a placeholder is where no value may go. Nothing is replaced.
var errMisplaced = errors.New("a placeholder of a secret is misplaced")

// Table is the placeholders of one call, and the only way from one to a value.
// It ends with the call: no other table knows them. It is safe for concurrent
// use.
//
// Whoever sends a request for the call sends what [Table.Fill] makes of its
// headers, after its own check that the host is granted, and follows redirects
// with the headers that Fill has not changed: a client that follows them by
// itself would carry values along. See RATIONALE, "Why does a guest get a
// placeholder, and not the secret?"
type Table struct {
	granted map[string]tool.Secret
	get     func(ctx context.Context, name string) (Record, error)

	mu            sync.Mutex
	byPlaceholder map[string]boundSecret // by placeholder
}

// boundSecret is what one placeholder stands for.
type boundSecret struct {
	name   string
	value  Value
	hosts  []string // normal; none: nowhere
	header string
}

// NewTable returns the table of a call that was granted these secrets. Get finds
// one, as [Vault.Get] does.
func NewTable(granted []tool.Secret, get func(ctx context.Context, name string) (Record, error)) *Table {
	t := &Table{granted: map[string]tool.Secret{}, get: get, byPlaceholder: map[string]boundSecret{}}
	for _, s := range granted {
		t.granted[s.Name] = s
	}
	return t
}

// Placeholder implements [services.Placeholders] with a new text for each call of it.
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
		return "", denied("is not granted to this call: the call has asked for %d placeholders", maxPlaceholders)
	}
	t.byPlaceholder[placeholder] = u
	return placeholder, nil
}

// maxPlaceholders is how many a call may have.
const maxPlaceholders = 1024

func denied(format string, args ...any) error {
	return &services.Error{Kind: services.Denied, Err: fmt.Errorf(format, args...)}
}

// bindSecret says where a secret may go: where the person has bound it to and where
// the tool has said that it wants it, if both have said something.
func bindSecret(asked tool.Secret, r Record) (boundSecret, error) {
	u := boundSecret{name: r.Name, value: r.Value, hosts: r.Hosts, header: cmp.Or(r.Header, asked.Header, DefaultHeader)}
	switch {
	case len(u.hosts) == 0:
		u.hosts = asked.Hosts
	case len(asked.Hosts) > 0:
		u.hosts = slices.DeleteFunc(slices.Clone(u.hosts), func(h string) bool { return !slices.Contains(asked.Hosts, h) })
		if len(u.hosts) == 0 {
			return u, denied("the secret %q is bound to %s, and the tool wants it for %s: is not granted to this call",
				r.Name, strings.Join(r.Hosts, ", "), strings.Join(asked.Hosts, ", "))
		}
	}
	if asked.Header != "" && !strings.EqualFold(u.header, asked.Header) {
		return u, denied("the secret %q is bound to the header %s, and the tool wants it in %s: is not granted to this call",
			r.Name, u.header, asked.Header)
	}
	return u, nil
}

// schemes may stand before a placeholder in Authorization, and one space.
var schemes = []string{"basic", "bearer", "token"}

// header returns the value of a header with its placeholder replaced, for a
// request to a host in the form of [hostOf]. The placeholder has to be alone, but
// for a known scheme in [DefaultHeader]: whoever chooses what stands beside a
// value chooses which part of it is lost where a server repeats so many bytes,
// and a part is not known to be a secret.
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
		return "", fmt.Errorf("%w: in the header %.80q it stands alone, or in %s behind one of %v and a space; what else belongs to it is to be part of the secret",
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

// placeholderRandomLen is the length of what follows prefix: of [rand.Text], 128 bits
// in base 32.
const placeholderRandomLen = 26

func forHosts(hosts []string) string {
	if len(hosts) == 0 {
		return "bound to no host, neither by who has set it nor by the tool"
	}
	return "for " + strings.Join(hosts, ", ")
}

// checkNoPlaceholder returns errMisplaced if a part of a request in which no value may go
// holds what begins like a placeholder, also percent-encoded. what names the
// part.
func checkNoPlaceholder(what, text string) error {
	if strings.Contains(text, prefix) {
		return fmt.Errorf("%w: the %s holds one; it goes into a header", errMisplaced, what)
	}
	if plain, err := url.QueryUnescape(text); err == nil && strings.Contains(plain, prefix) {
		return fmt.Errorf("%w: the %s holds one, percent-encoded; it goes into a header", errMisplaced, what)
	}
	return nil
}

// Fill returns the headers of a request with the values in the place of the
// placeholders. It fails if one is in the URL, in the body or in the name of a
// header, is unknown or for another host or header, or if the request could be
// read on its way: then nothing is to be sent. It changes nothing that it is
// given.
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

// hostOf returns the host of a URL in the form in which secrets are bound to
// hosts: NAME, or NAME:PORT where the port is not 443. It refuses a URL whose
// request could be read on its way, which is any but https, and http to this
// machine.
func hostOf(u *url.URL) (string, error) {
	port := u.Port()
	switch {
	case u.User != nil:
		return "", errors.New("the URL holds a user or a password")
	case u.Scheme == "https":
	case u.Scheme == "http" && port == "443":
		return "", errors.New("no secret is sent over \"http\" to port 443") // the form of the host would be that of https
	case u.Scheme == "http" && loopback(u.Hostname()):
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

func loopback(name string) bool {
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback() || strings.EqualFold(name, "localhost")
}
