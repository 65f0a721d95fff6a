package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// Host is a name or an address, in one canonical form: two hosts are the same if they are
// equal. The zero value is no host, and no rule matches it.
type Host struct {
	name string     // lower case, A-labels, no dot at the end; empty for an address
	addr netip.Addr // address without a zone; the zero Addr for a name
}

// Limits of a name, from RFC 1035; a longer one is no host.
const (
	maxNameBytes  = 253
	maxLabelBytes = 63
)

// errNumeric is the error for a name that some parsers take for an address. A form that some
// parsers accept and others do not could be a way around a rule.
var errNumeric = errors.New("it ends in a number and is no address; an IPv4 address is four decimal numbers without leading zeros")

// strict is IDNA2008 without any mapping. A name that would have to be mapped (capitals,
// full-width digits, ideographic dots) is an error.
var strict = idna.New(
	idna.ValidateLabels(true), idna.CheckHyphens(true), idna.CheckJoiners(true),
	idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true),
)

// ParseHost parses a host name or an address. A name consists of labels of letters, digits and
// hyphens. ASCII capitals become lower case, and one dot at the end is dropped. An
// international name may have either of its two forms, if each converts exactly to the other.
// An IPv4 address has four decimal numbers; an IPv6 address may stand in brackets and has no
// zone. Anything else is an error. The text of the result parses to the same host.
func ParseHost(s string) (Host, error) {
	h, err := parseHost(s)
	if err != nil {
		return Host{}, fmt.Errorf("host %.80q: %w", s, err)
	}
	return h, nil
}

func parseHost(s string) (Host, error) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		if !closed || err != nil || !addr.Is6() || addr.Zone() != "" {
			return Host{}, errors.New("brackets hold an IPv6 address without a zone, and nothing else")
		}
		return Host{addr: addr}, nil
	}
	if addr, err := netip.ParseAddr(s); err == nil {
		if addr.Zone() != "" {
			return Host{}, errors.New("an address has no zone here")
		}
		return Host{addr: addr}, nil
	}
	name, err := canonicalName(s)
	return Host{name: name}, err
}

func canonicalName(s string) (string, error) {
	if len(s) > 4*maxNameBytes { // before the slower checks
		return "", errors.New("it is too long")
	}
	name := strings.TrimSuffix(asciiLower(s), ".")
	if name == "" {
		return "", errors.New("it is empty")
	}
	if !isASCII(name) || strings.HasPrefix(name, "xn--") || strings.Contains(name, ".xn--") {
		ascii, err := international(name)
		if err != nil {
			return "", err
		}
		name = ascii
	}
	if len(name) > maxNameBytes {
		return "", fmt.Errorf("it has more than %d characters", maxNameBytes)
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if err := checkLabel(label); err != nil {
			return "", err
		}
		last = label
	}
	if numeric(last) {
		return "", errNumeric
	}
	return name, nil
}

// international returns the A-labels of an international name in either of its two forms.
func international(name string) (string, error) {
	ascii, err := strict.ToASCII(name)
	if err != nil {
		return "", errors.New("it is no international domain name in its final form, which has no capitals and nothing to be mapped")
	}
	text, err := strict.ToUnicode(ascii)
	if err != nil {
		return "", errors.New("it is no international domain name")
	}
	again, err := strict.ToASCII(text)
	switch {
	case err != nil || again != ascii:
		return "", errors.New("its two forms do not mean each other")
	case isASCII(text), name != ascii && name != text:
		return "", errors.New("it is another name in disguise")
	}
	// The tables of UTS 46 let symbols pass that look like a slash or a dot.
	for _, r := range text {
		if r != '.' && r != '-' && !unicode.In(r, unicode.L, unicode.M, unicode.Nd) {
			return "", fmt.Errorf("it holds %q, which is no letter or digit", r)
		}
	}
	return ascii, nil
}

func checkLabel(label string) error {
	switch {
	case label == "":
		return errors.New("it has an empty label")
	case len(label) > maxLabelBytes:
		return fmt.Errorf("a label has more than %d characters", maxLabelBytes)
	case label[0] == '-' || label[len(label)-1] == '-':
		return errors.New("a label begins or ends with a hyphen")
	}
	for i := range len(label) {
		if c := label[i]; c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return errors.New("it holds something else than letters, digits, hyphens and dots")
		}
	}
	return nil
}

// numeric reports whether some parsers take a name with this last label for an IPv4
// address: 127.1, 2130706433, 0x7f.1, 0177.0.0.1.
func numeric(label string) bool {
	if strings.Trim(label, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(label, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// IsAddr reports whether the host is an address, not a name.
func (h Host) IsAddr() bool { return h.addr.IsValid() }

// Addr returns the address; the zero Addr if the host is a name.
func (h Host) Addr() netip.Addr { return h.addr }

// Name returns the name, in A-labels and without a dot at the end; empty for an address.
func (h Host) Name() string { return h.name }

// String returns the name, or the address without brackets.
func (h Host) String() string {
	if h.IsAddr() {
		return h.addr.String()
	}
	return h.name
}

// nonPublicDomains are top-level domains without hosts of the internet: those of this
// machine, of local networks, and of names that are not in the DNS.
var nonPublicDomains = []string{
	"alt", "arpa", "corp", "home", "internal", "intranet", "invalid", "lan", "local", "localdomain", "localhost", "onion", "private", "test",
}

// public reports whether the name can be one of the internet, going by its text.
func (h Host) public() bool {
	i := strings.LastIndexByte(h.name, '.')
	return i > 0 && !slices.Contains(nonPublicDomains, h.name[i+1:])
}

// loopback reports whether the name stands for this machine (RFC 6761, 6.3). Such a name is
// never looked up.
func (h Host) loopback() bool {
	return h.name == "localhost" || strings.HasSuffix(h.name, ".localhost")
}
