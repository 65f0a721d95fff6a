package tool

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Limits on the secrets of a tool; a tool beyond them is refused.
const (
	maxSecretsPerTool = 16
	MaxHostsPerSecret = 16
	maxHostBytes      = 253 // bytes of one host, without the port
)

// Secret is a named secret that a tool asks for. The tool never gets its value. It gets a
// placeholder, which the host replaces by the value in one header of requests to certain
// hosts.
type Secret struct {
	Name string `json:"name"` // see [ValidSecretName]
	// Hosts lists the hosts that may receive the secret, in the form of [NormalHost]; if the
	// person bound it to hosts, too, only those in both lists. Empty: those of the person.
	Hosts []string `json:"hosts,omitempty"`
	// Header is the only header that may carry the secret; if the person named another one,
	// none may. Empty: the header that the person named, or else Authorization.
	Header string `json:"header,omitempty"`
	// When, as NAME=VALUE, limits the request to configurations in which NAME of
	// Manifest.Config is VALUE, see [Capabilities.WithConfig]. Empty: always.
	When string `json:"when,omitempty"`
}

// String returns the request for the secret, in one line.
func (s Secret) String() string {
	text := s.Name
	if s.Header != "" {
		text += " in the header " + s.Header
	}
	if len(s.Hosts) > 0 {
		text += " for " + strings.Join(s.Hosts, ", ")
	}
	if s.When != "" {
		text += " when " + s.When
	}
	return text
}

// SecretNames returns the sorted names of secrets.
func SecretNames(secrets []Secret) []string {
	names := make([]string, len(secrets))
	for i, s := range secrets {
		names[i] = s.Name
	}
	slices.Sort(names)
	return names
}

var headerRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,64}$") })

// ValidSecretName reports whether s is a [ValidName] that begins with a letter.
func ValidSecretName(s string) bool { return ValidName(s) && strings.IndexByte(letters, s[0]) >= 0 }

// ValidHeaderName reports whether the header s may carry a secret: it must be a token of RFC
// 9110 with at most 64 bytes, and must not affect the destination or the length of a message.
func ValidHeaderName(s string) bool {
	switch strings.ToLower(s) {
	case "host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive":
		return false
	}
	return headerRE().MatchString(s)
}

var errNoHost = errors.New("want NAME or NAME:PORT, for example api.github.com; no patterns, no https://")

// NormalHost checks the name of a host and returns it in the form in which hosts are compared:
// NAME or NAME:PORT, in lower case, without a final dot and without the port 443. It refuses
// patterns, paths, and names that are not ASCII: the caller must give these in their xn-- form.
func NormalHost(s string) (string, error) {
	if strings.ContainsAny(s, "/*@") {
		return "", fmt.Errorf("host %.80q: %w", s, errNoHost)
	}
	name, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i >= 0 && (strings.HasSuffix(s[:i], "]") || strings.Count(s, ":") == 1) {
		name, port = s[:i], s[i+1:]
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return "", fmt.Errorf("host %.80q: the port is not 1 to 65535", s)
		}
	}
	host, err := normalName(name)
	if err != nil {
		return "", fmt.Errorf("host %.80q: %w", s, err)
	}
	if port == "" || port == "443" {
		return host, nil
	}
	return host + ":" + port, nil
}

// normalName returns the normal form of the name or address of a host: lower case, and no dot
// at the end. An IPv6 address must be in brackets, and keeps them.
func normalName(name string) (string, error) {
	inner, bracketed := strings.CutPrefix(name, "[")
	if bracketed {
		inner = strings.TrimSuffix(inner, "]")
		ip, err := netip.ParseAddr(inner)
		if err != nil || !ip.Is6() || ip.Zone() != "" || name != "["+inner+"]" {
			return "", errors.New("not an IPv6 address in brackets")
		}
		return "[" + ip.String() + "]", nil
	}
	host := strings.TrimSuffix(strings.ToLower(name), ".")
	if host == "" || len(host) > maxHostBytes {
		return "", fmt.Errorf("a host has 1 to %d characters", maxHostBytes)
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "-") != label || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
			return "", errNoHost
		}
	}
	return host, nil
}

// check checks the name, the hosts and the header of a secret, and normalizes its hosts.
func (s *Secret) check() error {
	if !ValidSecretName(s.Name) {
		return fmt.Errorf("the secret's name %.80q is not 1 to 64 letters, digits, '_' or '-', the first a letter", s.Name)
	}
	if len(s.Hosts) > MaxHostsPerSecret {
		return fmt.Errorf("the secret %s names %d hosts, more than the limit of %d", s.Name, len(s.Hosts), MaxHostsPerSecret)
	}
	for i, h := range s.Hosts {
		host, err := NormalHost(h)
		if err != nil {
			return fmt.Errorf("the secret %s: %w", s.Name, err)
		}
		s.Hosts[i] = host
	}
	if s.Header != "" && !ValidHeaderName(s.Header) {
		return fmt.Errorf("the secret %s: %.80q cannot be a header that carries a secret", s.Name, s.Header)
	}
	return nil
}

func checkSecrets(secrets []Secret) error {
	if len(secrets) > maxSecretsPerTool {
		return fmt.Errorf("%d secrets, more than the limit of %d", len(secrets), maxSecretsPerTool)
	}
	seen := map[string]bool{}
	for i := range secrets {
		if err := secrets[i].check(); err != nil {
			return err
		}
		// Some keyrings ignore case.
		if name := strings.ToLower(secrets[i].Name); seen[name] {
			return fmt.Errorf("the secret %s is asked for twice", secrets[i].Name)
		} else {
			seen[name] = true
		}
	}
	return nil
}
