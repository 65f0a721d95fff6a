package policy

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// namePattern is a pattern over names of hosts: one name, or "*.NAME" for every
// name below NAME, at any depth and without NAME itself. Labels are compared
// whole, in lower case. Addresses are not its business.
type namePattern struct {
	name  string
	below bool
}

func parseNamePattern(s string) (namePattern, error) {
	name, below := strings.CutPrefix(s, "*.")
	name, ok := hostName(name)
	switch {
	case strings.Contains(s, "*") && (!below || strings.Contains(name, "*")):
		return namePattern{}, fmt.Errorf("%.80q: a star stands at the beginning, for whole labels: *.example.com", s)
	case !ok:
		return namePattern{}, fmt.Errorf("%.80q is not the name of a host: letters, digits and hyphens between dots", s)
	case below && !strings.Contains(name, "."):
		return namePattern{}, fmt.Errorf("%.80q would match a whole top-level domain", s)
	}
	return namePattern{name, below}, nil
}

func (p namePattern) match(name string) bool {
	if p.below {
		return strings.HasSuffix(name, "."+p.name) && len(name) > len(p.name)+1
	}
	return name == p.name
}

func (p namePattern) String() string {
	if p.below {
		return "*." + p.name
	}
	return p.name
}

// hostName checks the characters before anything is compared: what a resolver
// reads otherwise than we do is no name. A name without its last dot is the
// same name.
func hostName(s string) (string, bool) {
	s = strings.TrimSuffix(strings.ToLower(s), ".")
	if s == "" || len(s) > 253 {
		return "", false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return "", false
		}
		for i := range len(label) {
			if c := label[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return "", false
			}
		}
	}
	return s, true
}

// hostOf is the host that an argument names: a name, or a URL with one.
func hostOf(arg string) (string, bool) {
	if strings.Contains(arg, "/") {
		u, err := url.Parse(arg)
		if err != nil || u.Scheme == "" || u.User != nil {
			return "", false
		}
		arg = u.Hostname()
	}
	name, ok := hostName(arg)
	return name, ok && !otherAddress(name)
}

// otherAddress reports whether a resolver may read a name as an address that
// is usually written otherwise: 127.1, 0x7f000001, 017700000001.
func otherAddress(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x") {
		return false
	}
	_, err := netip.ParseAddr(name)
	return err != nil
}
