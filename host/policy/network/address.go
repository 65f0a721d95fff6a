package network

import (
	"net/netip"
	"slices"
)

// reserved is a range of addresses that can be reached only under a rule about addresses that
// is no wider than the range.
type reserved struct {
	prefix netip.Prefix
	what   string // kind of range, to follow "is" in a message
}

// reservedRanges holds all addresses outside the public internet, from IANA's registries
// for special purposes, and the addresses where clouds serve credentials. They are written
// out because the predicates of netip know only a part of them: not 100.64.0.0/10,
// 198.18.0.0/15, 240.0.0.0/4, ::/96, 64:ff9b::/96, 2002::/16 or fec0::/10. Ranges may
// overlap; an address needs a rule for each range that holds it.
var reservedRanges = []reserved{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared by a carrier (CGNAT)"},
	{netip.MustParsePrefix("100.100.100.200/32"), "a cloud's metadata service"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud's metadata service"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("169.254.169.254/32"), "a cloud's metadata service"},
	{netip.MustParsePrefix("169.254.170.2/32"), "a cloud's metadata service"},
	{netip.MustParsePrefix("169.254.170.23/32"), "a cloud's metadata service"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved for protocols"},
	{netip.MustParsePrefix("192.0.0.192/32"), "a cloud's metadata service"},
	{netip.MustParsePrefix("192.0.2.0/24"), "for documentation"},
	{netip.MustParsePrefix("192.31.196.0/24"), "reserved for protocols"},
	{netip.MustParsePrefix("192.52.193.0/24"), "reserved for protocols"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a 6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("192.175.48.0/24"), "reserved for protocols"},
	{netip.MustParsePrefix("198.18.0.0/15"), "for benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "for documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},

	// The internet is 2000::/3 of IPv6; these three are the rest.
	{netip.MustParsePrefix("::/3"), "reserved"},
	{netip.MustParsePrefix("4000::/2"), "reserved"},
	{netip.MustParsePrefix("8000::/1"), "reserved"},
	{netip.MustParsePrefix("::/96"), "an IPv4 address within (compatible)"},
	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("::ffff:0:0/96"), "an IPv4 address within (mapped)"},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), "an IPv4 address within (translated)"},
	{netip.MustParsePrefix("64:ff9b::/96"), "an IPv4 address within (NAT64)"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "an IPv4 address within (NAT64)"},
	{netip.MustParsePrefix("100::/64"), "discarded"},
	{netip.MustParsePrefix("100:0:0:1::/64"), "discarded"},
	{netip.MustParsePrefix("2001::/23"), "reserved for protocols"},
	{netip.MustParsePrefix("2001::/32"), "an IPv4 address within (Teredo)"},
	{netip.MustParsePrefix("2001:db8::/32"), "for documentation"},
	{netip.MustParsePrefix("2002::/16"), "an IPv4 address within (6to4)"},
	{netip.MustParsePrefix("2620:4f:8000::/48"), "reserved for protocols"},
	{netip.MustParsePrefix("3fff::/20"), "for documentation"},
	{netip.MustParsePrefix("5f00::/16"), "for segment routing"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "a cloud's metadata service"},
	{netip.MustParsePrefix("fd00:ec2::23/128"), "a cloud's metadata service"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "a cloud's metadata service"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "site-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

// loopbackPrefixes are the addresses of this machine.
var loopbackPrefixes = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// Public reports whether an address belongs to the public internet: it has no zone and is in
// no reserved range.
func Public(a netip.Addr) bool {
	return a.IsValid() && a.Zone() == "" && len(rangesOf(a)) == 0
}

// rangesOf returns the reserved ranges that hold an address, the narrowest first.
func rangesOf(a netip.Addr) []reserved {
	var out []reserved
	for _, r := range reservedRanges {
		if contains(r.prefix, a) {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(x, y reserved) int { return y.prefix.Bits() - x.prefix.Bits() })
	return out
}

// contains is Prefix.Contains without regard to the zone.
func contains(p netip.Prefix, a netip.Addr) bool { return p.Contains(a.WithZone("")) }

// embeddedIPv4 returns the IPv4 address that is part of an IPv6 address, if a gateway may
// forward packets to it. The result is false if there is none.
func embeddedIPv4(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return netip.Addr{}, false
	}
	b := a.As16()
	last := netip.AddrFrom4([4]byte(b[12:]))
	switch {
	case a == netip.IPv6Unspecified() || a == netip.IPv6Loopback():
		return netip.Addr{}, false
	case contains(netip.MustParsePrefix("2002::/16"), a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case contains(netip.MustParsePrefix("2001::/32"), a): // Teredo keeps it inverted
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), true
	}
	for _, p := range []string{"::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/96"} {
		if contains(netip.MustParsePrefix(p), a) {
			return last, true
		}
	}
	return netip.Addr{}, false
}
