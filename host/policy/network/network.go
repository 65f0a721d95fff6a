// Package network decides which hosts may be reached.
//
// A [Host] is a name or an address. [ParseHost] is the only parser of hosts, for
// connections, rules, lists and arguments alike. A [Rule] allows or denies hosts, and a
// [Network] holds all rules.
//
// [Network.Decide] decides about a host, a port and a protocol. It is pure: it asks no
// resolver. Code that resolves an allowed name must pass each address to
// [Decision.CheckAddr], and connect to no other address. A refusal is a [*Denial], with
// the smallest rule of the user that would allow the connection, if there is one.
package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Network holds the rules about the hosts that may be reached. It never changes; only [New]
// and the functions here make one. A nil Network denies everything. A host that no rule allows
// is denied, and a rule that denies wins over every rule that allows.
//
// A Network has layers, and each of them must allow a host. [Network.Restrict] adds a
// layer, so it can only take hosts away.
type Network struct {
	layers []layer
	deny   []Rule
}

// layer is one list of rules that allow, with its source.
type layer struct {
	source string
	allow  []Rule
}

// The sources of the layers for one tool, see [Network.ForTool].
const (
	SourceAllowance = "allowance" // the hosts that a person gave the tool
	SourceManifest  = "manifest"  // the hosts that the tool asks for
)

// The sources of other layers that have messages of their own. No flag adds hosts to the
// layers of the administrator, the user's policy and the project.
const (
	sourceSettings      = "settings"
	sourceAdministrator = "administrator"
	sourceUser          = "user"
	sourceProject       = "project"
)

// New returns the network with one layer of these rules. It copies them.
func New(rules []Rule) *Network {
	return new(Network).Restrict(sourceSettings, rules)
}

// Restrict returns the network with a further layer, such as the administrator's list: a host
// must be allowed by these rules, too. Rules that deny are added to those of n. source is the
// layer's source, as in policy.Source. Nil stays nil.
func (n *Network) Restrict(source string, rules []Rule) *Network {
	if n == nil {
		return nil
	}
	out := &Network{layers: slices.Clone(n.layers), deny: slices.Clone(n.deny)}
	added := layer{source: source}
	for _, r := range rules {
		if r.Allow {
			added.allow = append(added.allow, r)
		} else {
			out.deny = append(out.deny, r)
		}
	}
	out.layers = append(out.layers, added)
	return out
}

// ForProvider returns the network of a client that talks to the one host that the user has
// configured. The host may also resolve to this machine, where local models listen. Of the
// user's rules, the network has those that deny, and those that allow addresses, because a
// provider may be in a private network. An administrator's list has to be added with
// [Network.Restrict].
func ForProvider(host Host, port uint16, proto Protocol, rules []Rule) *Network {
	own := []Rule{{Allow: true, Name: host.name, Port: port, Protocol: proto}}
	if host.IsAddr() {
		own[0].Prefix = netip.PrefixFrom(host.addr, host.addr.BitLen())
	}
	for _, p := range loopbackPrefixes {
		own = append(own, Rule{Allow: true, Prefix: p, Port: port, Protocol: proto})
	}
	for _, r := range rules {
		if !r.Allow || r.Prefix.IsValid() {
			own = append(own, r)
		}
	}
	return New(own)
}

// ForTool returns the network of a tool with an allowance. It has the rules of n that deny,
// and none of n that allow. given are the hosts that the tool was given; asked are those in
// its manifest, in the form of [ParseAsked]. If asked is nil, the tool may reach every host
// that it was given.
func (n *Network) ForTool(given, asked []Rule) *Network {
	out := new(Network)
	if n != nil {
		out.deny = slices.Clone(n.deny)
	}
	out = out.Restrict(SourceAllowance, given)
	if asked != nil {
		out = out.Restrict(SourceManifest, asked)
	}
	return out
}

// WithHost returns the network with one further name, over https at port 443. It serves a
// question to a person about a host that no rule opens. It fails for the network of a tool
// with an allowance, if a rule denies the name, if another layer leaves it out, if the network
// already allows it, or if it cannot be a name of the internet. An address, http or another
// port needs a rule. [Decision.CheckAddr] still checks the addresses of the name.
func (n *Network) WithHost(name string) (*Network, bool) {
	if !n.startsWithSettings() || n.Decide(name, HTTPS.port(), HTTPS).Err() == nil {
		return nil, false
	}
	host, err := ParseHost(name)
	if err != nil || !host.public() {
		return nil, false
	}
	out := &Network{layers: slices.Clone(n.layers), deny: n.deny}
	first := &out.layers[0]
	first.allow = append(slices.Clone(first.allow), Rule{Allow: true, Name: host.name, Port: HTTPS.port(), Protocol: HTTPS})
	return out, out.Decide(host.name, HTTPS.port(), HTTPS).Err() == nil
}

// CanAddHost reports whether [Network.WithHost] can succeed for some name.
func (n *Network) CanAddHost() bool {
	if !n.startsWithSettings() {
		return false
	}
	for _, l := range n.layers[1:] {
		if !slices.ContainsFunc(l.allow, func(r Rule) bool { return r.Name != "" && r.matchesPort(HTTPS.port(), HTTPS) }) {
			return false
		}
	}
	return true
}

// startsWithSettings reports whether the first layer is the settings. Otherwise it is an
// allowance, to which no host is added.
func (n *Network) startsWithSettings() bool {
	return n != nil && len(n.layers) > 0 && n.layers[0].source == sourceSettings
}

// Rules returns the rules as text, for the record: those of the first layer that allow,
// then "only" and the rules of each further layer, then "not" and each rule that denies.
func (n *Network) Rules() []string {
	var out []string
	if n == nil {
		return nil
	}
	for i, l := range n.layers {
		var texts []string
		for _, r := range l.allow {
			texts = append(texts, r.String())
		}
		switch {
		case i == 0:
			out = texts
		case texts == nil:
			out = append(out, "only nothing")
		default:
			out = append(out, "only "+strings.Join(texts, " "))
		}
	}
	for _, r := range n.deny {
		out = append(out, "not "+r.String())
	}
	return out
}

// Closed reports whether no host at all can be reached: no rule of the first layer overlaps
// with all other layers.
func (n *Network) Closed() bool { return len(n.openRules()) == 0 }

// OpenRules returns the rules that make some host reachable, as text. Rules that deny are not
// considered.
func (n *Network) OpenRules() []string {
	var out []string
	for _, r := range n.openRules() {
		out = append(out, r.String())
	}
	return out
}

// openRules returns the rules of the first layer that overlap with a rule of each other layer.
func (n *Network) openRules() []Rule {
	if n == nil {
		return nil
	}
	left := n.layers[0].allow
	for _, l := range n.layers[1:] {
		left = slices.DeleteFunc(slices.Clone(left), func(r Rule) bool {
			return !slices.ContainsFunc(l.allow, func(o Rule) bool { return r.overlaps(&o) })
		})
	}
	return left
}

// overlaps reports whether both rules can match the same host, port and protocol.
func (r *Rule) overlaps(o *Rule) bool {
	switch {
	case r.Port != 0 && o.Port != 0 && r.Port != o.Port, r.Protocol != "" && o.Protocol != "" && r.Protocol != o.Protocol:
		return false
	case r.Prefix.IsValid() || o.Prefix.IsValid():
		return r.Prefix.IsValid() && o.Prefix.IsValid() && r.Prefix.Overlaps(o.Prefix)
	case r.Subdomains && o.Subdomains:
		return strings.HasSuffix("."+r.Name, "."+o.Name) || strings.HasSuffix("."+o.Name, "."+r.Name)
	case r.Subdomains:
		return r.matchesName(o.Name)
	}
	return o.matchesName(r.Name)
}

// Decision is the result for one connection. Only [Network.Decide] makes one; its zero value
// denies. It allows a host by its name: each address of the name must still pass
// [Decision.CheckAddr].
type Decision struct {
	net    *Network
	host   Host
	port   uint16
	proto  Protocol
	addrs  []netip.Addr // addresses of a host that needs no resolver, checked; nil: resolve the name
	denial *Denial      // nil: allowed
}

// Decide decides whether a host may be reached. It depends only on its arguments and the
// rules, not on a resolver or a clock.
func (n *Network) Decide(host string, port uint16, proto Protocol) Decision {
	d := Decision{net: n, port: port, proto: proto}
	h, err := ParseHost(host)
	switch {
	case err != nil:
		return d.deny(host, Denial{Reason: err.Error()})
	case port == 0:
		return d.deny(host, Denial{Reason: "there is no port 0"})
	case !proto.known():
		return d.deny(host, Denial{Reason: fmt.Sprintf("the protocol %.20q is not spoken here", string(proto))})
	}
	d.host = h
	if n == nil {
		return d.deny(h.String(), Denial{Reason: "the network is not granted"})
	}
	if h.IsAddr() {
		return d.address()
	}
	for i := range n.deny {
		if r := &n.deny[i]; r.matchesPort(port, proto) && r.matchesName(h.name) {
			return d.deny(h.name, r.denial())
		}
	}
	if h.loopback() {
		return d.local()
	}
	for _, l := range slices.Backward(n.layers) { // the first layer last: only to it a flag can add
		if !slices.ContainsFunc(l.allow, func(r Rule) bool { return r.matchesPort(port, proto) && r.matchesName(h.name) }) {
			return d.deny(h.name, l.denial(d.exact()))
		}
	}
	return d
}

// local decides about the name of this machine. A rule about a loopback address is enough;
// none about the name is needed.
func (d Decision) local() Decision {
	var first *Denial
	for _, a := range []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()} {
		if denial := d.check(a); denial == nil {
			d.addrs = append(d.addrs, a)
		} else if first == nil {
			first = denial
		}
	}
	if len(d.addrs) == 0 {
		return d.deny(d.host.name, *first)
	}
	return d
}

func (d Decision) address() Decision {
	if denial := d.check(d.host.addr); denial != nil {
		return d.deny(d.host.String(), *denial)
	}
	for _, l := range slices.Backward(d.net.layers) {
		if !l.allowsAddr(d.host.addr, d.port, d.proto, 0) {
			return d.deny(d.host.String(), l.denial(d.exactAddr(d.host.addr)))
		}
	}
	d.addrs = []netip.Addr{d.host.addr}
	return d
}

// allowsAddr reports whether a rule of the layer allows an address. The prefix of the rule
// must have at least this many bits.
func (l *layer) allowsAddr(a netip.Addr, port uint16, proto Protocol, bits int) bool {
	return slices.ContainsFunc(l.allow, func(r Rule) bool {
		return r.Prefix.IsValid() && r.Prefix.Bits() >= bits && r.matchesPort(port, proto) && contains(r.Prefix, a)
	})
}

// check returns nil unless a rule denies the address, or the address is in a reserved range
// that some layer does not open by address. Rules about names do not matter.
func (d Decision) check(a netip.Addr) *Denial {
	for i := range d.net.deny {
		if r := &d.net.deny[i]; r.Prefix.IsValid() && r.matchesPort(d.port, d.proto) && contains(r.Prefix, a) {
			denial := r.denial()
			denial.Addr = a
			return &denial
		}
	}
	for _, r := range rangesOf(a) {
		for _, l := range slices.Backward(d.net.layers) {
			// A rule with a wider prefix than the range does not open it: 0.0.0.0/0
			// stands for the internet.
			if !l.allowsAddr(a, d.port, d.proto, r.prefix.Bits()) {
				denial := l.denial(d.exactAddr(a))
				denial.Addr = a
				denial.Reason = fmt.Sprintf("the address %s is %s (%s) and not granted by address", a, r.what, r.prefix)
				switch l.source {
				case sourceAdministrator:
					denial.Reason += " by the administrator"
				case SourceAllowance:
					denial.Reason += " to the tool"
				case SourceManifest:
					denial.Reason = fmt.Sprintf("the tool does not ask for the address %s, which is %s (%s)", a, r.what, r.prefix)
				case sourceUser, sourceProject:
					denial.Reason += fmt.Sprintf(" by the %s's policy", l.source)
				}
				return &denial
			}
		}
	}
	if inner, ok := embeddedIPv4(a); ok {
		if denial := d.check(inner); denial != nil {
			denial.Addr = a
			return denial
		}
	}
	return nil
}

// CheckAddr returns a [*Denial] unless the host may be reached at this address. Code that
// resolves a name must check each address, and connect to no other.
func (d Decision) CheckAddr(a netip.Addr) error {
	if err := d.Err(); err != nil {
		return err
	}
	text := d.host.String()
	switch {
	case !a.IsValid() || a.Zone() != "":
		return d.deny(text, Denial{Reason: "the name leads to something that is no address, or has a zone"}).denial
	case a.Is4In6():
		a = a.Unmap() // a connection to it goes to the IPv4 address
	}
	if len(d.addrs) > 0 && !slices.Contains(d.addrs, a) {
		return d.deny(text, Denial{Addr: a, Reason: fmt.Sprintf("%s is another address", a)}).denial
	}
	if denial := d.check(a); denial != nil {
		return d.deny(text, *denial).denial
	}
	return nil
}

// Err returns a [*Denial] unless the host may be reached.
func (d Decision) Err() error {
	switch {
	case d.denial != nil:
		return d.denial
	case d.net == nil:
		return &Denial{Reason: "nothing was decided"}
	}
	return nil
}

// String returns PROTOCOL://HOST:PORT.
func (d Decision) String() string {
	host := d.host.String()
	if d.denial != nil {
		host = fmt.Sprintf("%.255s", d.denial.Host)
	}
	return fmt.Sprintf("%s://%s:%d", d.proto, bracketed(host), d.port)
}

func bracketed(host string) string {
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		return "[" + host + "]"
	}
	return host
}

// Host returns the host; zero if the host, the port or the protocol was invalid.
func (d Decision) Host() Host { return d.host }

// Port returns the port.
func (d Decision) Port() uint16 { return d.port }

// Protocol returns the protocol.
func (d Decision) Protocol() Protocol { return d.proto }

// Addresses returns the checked addresses of a host that needs no resolver: an address, or
// this machine. Nil: the name has to be resolved.
func (d Decision) Addresses() []netip.Addr { return slices.Clone(d.addrs) }

func (d Decision) deny(host string, denial Denial) Decision {
	denial.Host, denial.Port, denial.Protocol = host, d.port, d.proto
	d.denial, d.addrs = &denial, nil
	return d
}

// exact returns the smallest rule that allows the host by its name.
func (d Decision) exact() Rule {
	return Rule{Allow: true, Name: d.host.name, Port: d.port, Protocol: d.proto}
}

func (d Decision) exactAddr(a netip.Addr) Rule {
	return Rule{Allow: true, Prefix: netip.PrefixFrom(a, a.BitLen()), Port: d.port, Protocol: d.proto}
}

func (r *Rule) denial() Denial {
	return Denial{Rule: r.String(), Source: sourceSettings, Reason: fmt.Sprintf("the %s rule %q denies it", sourceSettings, r)}
}

// denial returns the denial of a layer without a rule that allows the host. missing is the
// smallest such rule.
func (l *layer) denial(missing Rule) Denial {
	denial := Denial{Source: l.source, Reason: "no rule allows it"}
	switch {
	case l.source == sourceAdministrator:
		denial.Reason = "it is not on the administrator's list"
	case l.source == sourceUser || l.source == sourceProject:
		denial.Reason = fmt.Sprintf("it is not on the list of the %s's policy", l.source)
	case l.source == SourceAllowance:
		denial.Reason = "the tool was not given this host"
	case l.source == SourceManifest:
		denial.Reason = "the tool does not ask for this host"
	case missing.Prefix.IsValid() && missing.Prefix.Addr().Is4In6():
	default:
		denial.AllowRule = &missing
	}
	return denial
}

// Denial is the error for a refused connection, with the reason and, if the user can add one,
// the rule that would allow the connection.
type Denial struct {
	Host      string
	Port      uint16
	Protocol  Protocol
	Addr      netip.Addr // refused address; zero: the name was refused
	Rule      string     // rule that denied; empty: no rule did
	Source    string     // source of that rule, or of the layer without a rule that allows
	Reason    string     // reason, one clause
	AllowRule *Rule      // smallest rule that would allow the connection; nil: none of the user's would
}

// Error returns the connection, the reason, and AllowRule if there is one.
func (e *Denial) Error() string {
	text := fmt.Sprintf("no connection to %s://%.300s:%d: %s", e.Protocol, bracketed(e.Host), e.Port, e.Reason)
	if e.Host == "" {
		text = "no connection: " + e.Reason
	}
	if e.AllowRule != nil {
		text += fmt.Sprintf("; the rule %q of the network would allow it", e.AllowRule)
	}
	return text
}
