package policy

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// namePattern is a pattern over hosts: one name or address, or "*.NAME" for every
// name below NAME, at any depth and without NAME itself. Labels are compared
// whole.
type namePattern struct {
	name  string // as nameOf gives it
	below bool
}

func parseNamePattern(s string) (namePattern, error) {
	name, below := strings.CutPrefix(s, "*.")
	if strings.Contains(name, "*") {
		return namePattern{}, fmt.Errorf("%.80q: a star stands at the beginning, for whole labels: *.example.com", s)
	}
	h, err := ParseHost(name)
	switch {
	case err != nil:
		return namePattern{}, err
	case below && h.IsAddr():
		return namePattern{}, errors.New("nothing is below an address")
	case below && !strings.Contains(h.name, "."):
		return namePattern{}, fmt.Errorf("%.80q would match a whole top-level domain", s)
	}
	return namePattern{nameOf(h), below}, nil
}

func (p namePattern) match(name string) bool {
	if p.below {
		return strings.HasSuffix(name, "."+p.name)
	}
	return name == p.name
}

func (p namePattern) String() string {
	if p.below {
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

// hostOf is the host that an argument names: a host, or a URL with one.
func hostOf(arg string) (string, bool) {
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
