package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Protocol is what is spoken over a connection.
type Protocol string

// The protocols.
const (
	HTTP  Protocol = "http"
	HTTPS Protocol = "https"
	TCP   Protocol = "tcp" // bytes that nobody of ours reads
)

// port is where a protocol is spoken when nobody says; 0 is nowhere.
func (p Protocol) port() uint16 { return map[Protocol]uint16{HTTP: 80, HTTPS: 443}[p] }

func (p Protocol) known() bool { return p == HTTP || p == HTTPS || p == TCP }

// NetRule opens or closes a way to hosts. Exactly one of Name and Prefix is set.
type NetRule struct {
	Effect Effect // Allow; anything else denies
	// Name matches the host of that name, in the form of [Host.Name]. With
	// Below, it matches the hosts below that name and not the name itself.
	Name  string
	Below bool
	// Prefix matches addresses.
	Prefix netip.Prefix

	Port     uint16   // 0: any
	Protocol Protocol // empty: any
	Source   Source
}

// ParseNetRule reads [PROTOCOL://]HOST[:PORT]. The protocol is http, https or
// tcp. HOST is a name, "*." and a name for all that is below it, an address,
// or a prefix such as 10.0.0.0/8; IPv6 before a port stands in brackets, also
// with its length ([fd00::/8]:443). PORT is a number, or "*" for any.
//
// What is left out means the least: for a rule that allows https, at the port
// of the protocol, which tcp does not have; for one that denies any.
func ParseNetRule(effect Effect, s string) (NetRule, error) {
	r, err := parseNetRule(effect, s)
	if err != nil {
		return NetRule{}, fmt.Errorf("network rule %.80q: %w", s, err)
	}
	return r, nil
}

func parseNetRule(effect Effect, s string) (NetRule, error) {
	if effect != Allow {
		effect = Deny
	}
	r := NetRule{Effect: effect}
	rest := s
	if proto, after, ok := strings.Cut(s, "://"); ok {
		r.Protocol, rest = Protocol(proto), after
		if !r.Protocol.known() {
			return r, errors.New("the protocols are http, https and tcp")
		}
	} else if effect == Allow {
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
		if r.Port, err = ParsePort(port); err != nil {
			return r, err
		}
	case effect == Allow:
		if r.Port = r.Protocol.port(); r.Port == 0 {
			return r, errors.New("tcp needs a port")
		}
	}
	return r, nil
}

// splitRule takes the port off a host, which can hold colons and a slash.
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

func (r *NetRule) setHost(s string) error {
	if strings.Contains(s, "/") {
		p, err := netip.ParsePrefix(s)
		switch {
		case err != nil:
			return errors.New("what stands before the slash is no address, or what follows is no length")
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
		r.Name, r.Below = h.name, below
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

// ParsePort reads the number of a port, from 1 to 65535, without leading zeros.
func ParsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '0' || s[0] == '+' {
		return 0, fmt.Errorf("port %.20q is no number from 1 to 65535", s)
	}
	return uint16(n), nil
}

// String gives the shortest form that [ParseNetRule] reads.
func (r NetRule) String() string {
	var b strings.Builder
	if r.Protocol != "" && (r.Effect != Allow || r.Protocol != HTTPS) {
		b.WriteString(string(r.Protocol) + "://")
	}
	switch {
	case !r.Prefix.IsValid() && r.Below:
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
	case r.Port != 0 && (r.Effect != Allow || r.Port != r.Protocol.port()):
		b.WriteString(":" + strconv.Itoa(int(r.Port)))
	case r.Port == 0 && r.Effect == Allow:
		b.WriteString(":*")
	}
	return b.String()
}

// speaks reports whether the rule is about this port and protocol.
func (r *NetRule) speaks(port uint16, proto Protocol) bool {
	return (r.Port == 0 || r.Port == port) && (r.Protocol == "" || r.Protocol == proto)
}

// matchesName compares whole labels: *.example.com is not evilexample.com.
func (r *NetRule) matchesName(name string) bool {
	if r.Name == "" || r.Prefix.IsValid() {
		return false
	}
	if r.Below {
		return strings.HasSuffix(name, "."+r.Name)
	}
	return name == r.Name
}
