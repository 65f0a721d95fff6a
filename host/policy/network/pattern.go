package network

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Pattern matches hosts: one name or address, or "*.NAME" for all subdomains of NAME, at
// any depth and without NAME itself. Labels are compared whole.
type Pattern struct {
	name       string // name or address, as returned by nameOf
	subdomains bool   // set for "*.NAME"
}

// ParsePattern parses a name, an address, or "*." and a name that is no top-level domain.
func ParsePattern(s string) (Pattern, error) {
	name, below := strings.CutPrefix(s, "*.")
	if strings.Contains(name, "*") {
		return Pattern{}, fmt.Errorf("%.80q: a star stands at the beginning, for whole labels: *.example.com", s)
	}
	h, err := ParseHost(name)
	switch {
	case err != nil:
		return Pattern{}, err
	case below && h.IsAddr():
		return Pattern{}, errors.New("nothing is below an address")
	case below && !strings.Contains(h.name, "."):
		return Pattern{}, fmt.Errorf("%.80q would match a whole top-level domain", s)
	}
	return Pattern{nameOf(h), below}, nil
}

// Match reports whether the pattern matches a host, named as [HostOf] returns it.
func (p Pattern) Match(name string) bool {
	if p.subdomains {
		return strings.HasSuffix(name, "."+p.name)
	}
	return name == p.name
}

// Name returns the name or address; for "*.NAME" it is NAME.
func (p Pattern) Name() string { return p.name }

// String returns the form that [ParsePattern] parses.
func (p Pattern) String() string {
	if p.subdomains {
		return "*." + p.name
	}
	return p.name
}

// nameOf returns the text by which hosts are compared. It is the same for an IPv4 address and
// its mapped form.
func nameOf(h Host) string {
	if h.IsAddr() {
		return h.addr.Unmap().String()
	}
	return h.name
}

// HostOf returns the host in an argument, which is a host or a URL, as text for
// [Pattern.Match]. ok is false if there is none.
func HostOf(arg string) (name string, ok bool) {
	if strings.Contains(arg, "/") {
		u, err := url.Parse(arg)
		if err != nil || u.Scheme == "" || u.User != nil {
			return "", false
		}
		arg = u.Hostname()
	}
	h, err := ParseHost(arg)
	return nameOf(h), err == nil
}
