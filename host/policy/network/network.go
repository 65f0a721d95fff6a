// Package network says who may be reached.
//
// A [Host] is a name or an address, and [ParseHost] the one parser of hosts: of
// those that are connected to, that rules and lists name and that stand in
// arguments. What it refuses is no host to anybody. A [Rule] opens or closes a way
// to hosts, a [Network] is all rules together.
//
// [Network.Decide] says whether a host, a port and a protocol may be reached. It is
// pure: it asks no resolver. A name that is allowed is not yet an address that is:
// whoever resolves it asks [Decision.CheckAddr] about each address, and connects to
// no other. A refusal is a [*Denial], which knows the smallest rule that would allow
// what was refused.
package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Network says which hosts may be talked to. It never changes; a nil Network
// denies everything. What is not allowed is denied, and a rule that denies wins
// over every rule that allows.
//
// It has layers, of which each has to allow: [Network.Restrict] adds one, so it
// can only take away.
type Network struct {
	layers []layer
	deny   []Rule
}

type layer struct {
	source string
	allow  []Rule
}

// The layers of the network of one tool, see [Network.ForTool].
const (
	SourceAllowance = "allowance" // what a person lets it have
	SourceManifest  = "manifest"  // what it asks for
)

// Whose other layers they are, as far as a message differs. No flag adds to those of
// the administrator, the user's policy and the project's.
const (
	sourceSettings      = "settings"
	sourceAdministrator = "administrator"
	sourceUser          = "user"
	sourceProject       = "project"
)

// New returns the network of these rules, which it copies.
func New(rules []Rule) *Network {
	return new(Network).Restrict(sourceSettings, rules)
}

// Restrict returns what is left of n when these rules have to allow, too, such as
// the administrator's list. Source is whose they are, in the word that a policy
// has for it.
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

// ForProvider returns the network of a client that talks to the one host
// that the user has configured: that host, and wherever it leads on this machine
// itself, where local models listen. Of the user's rules, those that deny hold,
// and those that allow addresses, because a provider may live in a private
// network. An administrator's list goes on top of it, with [Network.Restrict].
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

// ForTool returns the network of one tool, which was given hosts of its own: of n it
// keeps what n denies, and nothing that n allows. Asked are the hosts that the tool
// wants, in the form of [ParseAsked]; nil: any that it was given.
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

// WithHost returns the network that reaches one name more, over https at its port, for
// who asks a person about a host that no rule opens. It fails where anything else is in
// the way: a rule that denies the name, a layer that leaves it out, or that it can be no
// name of the internet. So an address, http and another port need a rule, and where a
// name leads is still for [Decision.CheckAddr].
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

// CanAddHost reports whether [Network.WithHost] can open any name at all.
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

// startsWithSettings reports whether the first layer is the settings: what a tool was given is not
// added to.
func (n *Network) startsWithSettings() bool {
	return n != nil && len(n.layers) > 0 && n.layers[0].source == sourceSettings
}

// Rules lists what the network consists of, for the record: the rules, and for
// each layer under which they are "only" with what it leaves.
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

// Closed reports whether no host at all can be reached: each layer would have to
// allow it.
func (n *Network) Closed() bool { return len(n.openRules()) == 0 }

// OpenRules lists the rules that leave some host to be reached, if nothing denies it.
func (n *Network) OpenRules() []string {
	var out []string
	for _, r := range n.openRules() {
		out = append(out, r.String())
	}
	return out
}

// openRules are the rules of the first layer of which each other layer leaves something.
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

// overlaps reports whether some host can be one that both rules allow.
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

// Decision is the answer to one request for a connection. It is made by
// [Network.Decide] only; its zero value denies. It allows a host as it is named:
// each address that the name leads to has still to pass [Decision.CheckAddr].
type Decision struct {
	net    *Network
	host   Host
	port   uint16
	proto  Protocol
	addrs  []netip.Addr // known without a resolver
	denial *Denial
}

// Decide says whether a host may be talked to. It looks at its arguments and at
// the rules, and asks nobody: no resolver, no clock.
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
	for _, l := range slices.Backward(n.layers) { // a flag opens nothing that a layer above does not
		if !slices.ContainsFunc(l.allow, func(r Rule) bool { return r.matchesPort(port, proto) && r.matchesName(h.name) }) {
			return d.deny(h.name, l.denial(d.exact()))
		}
	}
	return d
}

// local decides about this machine under its own name: the grant is that of
// the address, which needs no other.
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

// allowsAddr reports whether a rule of at least so many bits allows an address.
func (l *layer) allowsAddr(a netip.Addr, port uint16, proto Protocol, bits int) bool {
	return slices.ContainsFunc(l.allow, func(r Rule) bool {
		return r.Prefix.IsValid() && r.Prefix.Bits() >= bits && r.matchesPort(port, proto) && contains(r.Prefix, a)
	})
}

// check is nil if an address may be reached in so far as it is an address.
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
			// A rule that is wider than the range means something else: whoever
			// writes 0.0.0.0/0 thinks of the internet.
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

// CheckAddr returns nil if the host may be reached at this address, or a
// [*Denial]. Whoever resolves a name asks for each address, and connects to
// no other.
func (d Decision) CheckAddr(a netip.Addr) error {
	if err := d.Err(); err != nil {
		return err
	}
	text := d.host.String()
	switch {
	case !a.IsValid() || a.Zone() != "":
		return d.deny(text, Denial{Reason: "the name leads to something that is no address, or has a zone"}).denial
	case a.Is4In6():
		a = a.Unmap() // that is where a connection to it goes
	}
	if len(d.addrs) > 0 && !slices.Contains(d.addrs, a) {
		return d.deny(text, Denial{Addr: a, Reason: fmt.Sprintf("%s is another address", a)}).denial
	}
	if denial := d.check(a); denial != nil {
		return d.deny(text, *denial).denial
	}
	return nil
}

// Err is nil if the host may be talked to, or a [*Denial].
func (d Decision) Err() error {
	switch {
	case d.denial != nil:
		return d.denial
	case d.net == nil:
		return &Denial{Reason: "nothing was decided"}
	}
	return nil
}

// String is PROTOCOL://HOST:PORT.
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

// Host is who may be talked to.
func (d Decision) Host() Host { return d.host }

// Port is where.
func (d Decision) Port() uint16 { return d.port }

// Protocol is how.
func (d Decision) Protocol() Protocol { return d.proto }

// Addresses are those of a host that needs no resolver: an address, or this
// machine. They are checked. Nil: the name has to be resolved.
func (d Decision) Addresses() []netip.Addr { return slices.Clone(d.addrs) }

func (d Decision) deny(host string, denial Denial) Decision {
	denial.Host, denial.Port, denial.Protocol = host, d.port, d.proto
	d.denial, d.addrs = &denial, nil
	return d
}

// exact is the smallest rule that allows the host as it is named.
func (d Decision) exact() Rule {
	return Rule{Allow: true, Name: d.host.name, Port: d.port, Protocol: d.proto}
}

func (d Decision) exactAddr(a netip.Addr) Rule {
	return Rule{Allow: true, Prefix: netip.PrefixFrom(a, a.BitLen()), Port: d.port, Protocol: d.proto}
}

func (r *Rule) denial() Denial {
	return Denial{Rule: r.String(), Source: sourceSettings, Reason: fmt.Sprintf("the %s rule %q denies it", sourceSettings, r)}
}

// denial is the denial of a layer in which a rule is missing.
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

// Denial is a refusal, and what a person can do about it.
type Denial struct {
	Host     string
	Port     uint16
	Protocol Protocol
	// Addr is the address that was refused; the zero Addr if it was the name.
	Addr   netip.Addr
	Rule   string // that denied; empty: none allowed
	Source string // of that rule, or of the list in which one is missing
	Reason string // one clause
	// AllowRule is the smallest rule that would allow what was refused. Nil: no rule
	// of the user would.
	AllowRule *Rule
}

// Error says what was refused, why, and what would allow it.
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
