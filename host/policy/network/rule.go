package network

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Protocol is the protocol of a connection.
type Protocol string

// The protocols.
const (
	HTTP  Protocol = "http"
	HTTPS Protocol = "https"
	TCP   Protocol = "tcp" // any bytes, which this program does not parse
)

// port returns the default port of the protocol; 0: it has none.
func (p Protocol) port() uint16 { return map[Protocol]uint16{HTTP: 80, HTTPS: 443}[p] }

func (p Protocol) known() bool { return p == HTTP || p == HTTPS || p == TCP }

// Rule allows or denies hosts. Exactly one of Name and Prefix is set.
type Rule struct {
	Allow bool // false: the rule denies
	// Name is the host of this name, in the form of [Host.Name]. If Subdomains is set, it is
	// all names below instead, without the name itself.
	Name       string
	Subdomains bool
	Prefix     netip.Prefix // addresses

	Port     uint16   // 0: any
	Protocol Protocol // empty: any
}

// ParseRule parses a rule that allows: [PROTOCOL://]HOST[:PORT]. The protocol is http, https
// or tcp. HOST is a name, "*." and a name for its subdomains, an address, or a prefix such as
// 10.0.0.0/8. IPv6 before a port stands in brackets, with its length if it has one
// ([fd00::/8]:443). PORT is a number, or "*" for any. The default protocol is https, and the
// default port that of the protocol; tcp has none.
func ParseRule(s string) (Rule, error) { return parseRule(s, true) }

// ParseDenial parses a rule that denies, in the form of [ParseRule]. Without a protocol or a
// port, it denies any.
func ParseDenial(s string) (Rule, error) { return parseRule(s, false) }

// ParseListed parses an entry of a list of hosts, in the form of [ParsePattern]. The rule
// allows any port and any protocol.
func ParseListed(s string) (Rule, error) {
	if _, err := ParsePattern(s); err != nil {
		return Rule{}, err
	}
	r := Rule{Allow: true}
	if err := r.setHost(s); err != nil {
		return Rule{}, err
	}
	return r, nil
}

// ParseAsked parses a host in a tool's manifest, in the form of [ParseRule]. Without a
// protocol or a port, the rule allows any.
func ParseAsked(s string) (Rule, error) {
	r, err := parseRule(s, false)
	r.Allow = err == nil
	return r, err
}

func parseRule(s string, allow bool) (Rule, error) {
	r, err := readRule(s, allow)
	if err != nil {
		return Rule{}, fmt.Errorf("network rule %.80q: %w", s, err)
	}
	return r, nil
}

func readRule(s string, allow bool) (Rule, error) {
	r := Rule{Allow: allow}
	rest := s
	if proto, after, ok := strings.Cut(s, "://"); ok {
		r.Protocol, rest = Protocol(proto), after
		if !r.Protocol.known() {
			return r, errors.New("the protocols are http, https and tcp")
		}
	} else if allow {
		r.Protocol = HTTPS
	}
	host, port, hasPort, err := splitRule(rest)
	if err != nil {
		return r, err
	}
	if err := r.setHost(host); err != nil {
		return r, err
	}
	switch {
	case port == "*":
	case hasPort:
		if r.Port, err = parsePort(port); err != nil {
			return r, err
		}
	case allow:
		if r.Port = r.Protocol.port(); r.Port == 0 {
			return r, errors.New("tcp needs a port")
		}
	}
	return r, nil
}

// splitRule splits HOST[:PORT]. HOST can hold colons and a slash.
func splitRule(s string) (host, port string, hasPort bool, err error) {
	if strings.HasPrefix(s, "[") {
		inner, after, closed := strings.Cut(s[1:], "]")
		if !closed || !strings.Contains(inner, ":") {
			return "", "", false, errors.New("brackets hold an IPv6 address or prefix")
		}
		if after == "" {
			return inner, "", false, nil
		}
		port, ok := strings.CutPrefix(after, ":")
		if !ok {
			return "", "", false, errors.New("only a port can follow the brackets")
		}
		return inner, port, true, nil
	}
	if strings.Count(s, ":") == 1 {
		host, port, _ = strings.Cut(s, ":")
		return host, port, true, nil
	}
	return s, "", false, nil // more colons: a bare IPv6 address
}

func (r *Rule) setHost(s string) error {
	if strings.Contains(s, "/") {
		p, err := netip.ParsePrefix(s)
		switch {
		case err != nil:
			return errors.New("the prefix is not ADDRESS/LENGTH")
		case p.Addr().Is4In6():
			return errMapped
		case p != p.Masked():
			return fmt.Errorf("the prefix has bits behind its length; write %s", p.Masked())
		}
		r.Prefix = p
		return nil
	}
	name, below := strings.CutPrefix(s, "*.")
	h, err := ParseHost(name)
	switch {
	case err != nil && strings.Contains(name, "*"):
		return errors.New(`"*" can stand for whole labels at the beginning only, as in *.example.com`)
	case err != nil:
		return err
	case !h.IsAddr():
		r.Name, r.Subdomains = h.name, below
	case below:
		return errors.New("nothing is below an address")
	case h.addr.Is4In6():
		return errMapped
	default:
		r.Prefix = netip.PrefixFrom(h.addr, h.addr.BitLen())
	}
	return nil
}

var errMapped = errors.New("write the IPv4 address that is within; the mapped form cannot be reached")

// parsePort parses a port, from 1 to 65535, without leading zeros.
func parsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '0' || s[0] == '+' {
		return 0, fmt.Errorf("port %.20q is no number from 1 to 65535", s)
	}
	return uint16(n), nil
}

// String returns the shortest form that [ParseRule] or [ParseDenial] parses. That form has no
// sign for a rule that allows any protocol: it reads like one for https.
func (r Rule) String() string {
	var b strings.Builder
	if r.Protocol != "" && (!r.Allow || r.Protocol != HTTPS) {
		b.WriteString(string(r.Protocol) + "://")
	}
	switch {
	case !r.Prefix.IsValid() && r.Subdomains:
		b.WriteString("*." + r.Name)
	case !r.Prefix.IsValid():
		b.WriteString(r.Name)
	default:
		s := r.Prefix.String()
		if r.Prefix.IsSingleIP() {
			s = r.Prefix.Addr().String()
		}
		if r.Prefix.Addr().Is6() {
			s = "[" + s + "]"
		}
		b.WriteString(s)
	}
	switch {
	case r.Port != 0 && (!r.Allow || r.Port != r.Protocol.port()):
		b.WriteString(":" + strconv.Itoa(int(r.Port)))
	case r.Port == 0 && r.Allow:
		b.WriteString(":*")
	}
	return b.String()
}

func (r *Rule) matchesPort(port uint16, proto Protocol) bool {
	return (r.Port == 0 || r.Port == port) && (r.Protocol == "" || r.Protocol == proto)
}

// matchesName reports whether the rule matches a name. Labels are compared whole:
// *.example.com does not match evilexample.com.
func (r *Rule) matchesName(name string) bool {
	if r.Name == "" || r.Prefix.IsValid() {
		return false
	}
	if r.Subdomains {
		return strings.HasSuffix(name, "."+r.Name)
	}
	return name == r.Name
}
