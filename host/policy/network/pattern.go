package network

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Pattern is a pattern over hosts: one name or address, or "*.NAME" for every
// name below NAME, at any depth and without NAME itself. Labels are compared
// whole.
type Pattern struct {
	name       string // as nameOf gives it
	subdomains bool
}

// ParsePattern reads a name, an address, or "*." and a name that is no top-level
// domain.
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

// Match takes a host as [HostOf] gives it.
func (p Pattern) Match(name string) bool {
	if p.subdomains {
		return strings.HasSuffix(name, "."+p.name)
	}
	return name == p.name
}

// Name is the name or address: for "*.NAME" it is NAME.
func (p Pattern) Name() string { return p.name }

// String gives the form that [ParsePattern] reads.
func (p Pattern) String() string {
	if p.subdomains {
		return "*." + p.name
	}
	return p.name
}

// nameOf is a host as it is compared: an IPv4 address and the mapped form of it
// are one machine.
func nameOf(h Host) string {
	if h.IsAddr() {
		return h.addr.Unmap().String()
	}
	return h.name
}

// HostOf is the host that an argument names, as it is compared: a host, or a URL
// with one. It fails if there is none.
func HostOf(arg string) (string, bool) {
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
