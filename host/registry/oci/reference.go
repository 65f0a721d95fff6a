package oci

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/registry/sign"
)

// Scheme is the prefix of every reference to a registry.
const Scheme = "oci://"

// Limits on names, from the OCI distribution specification.
const (
	maxReferenceBytes  = 1024
	maxRepositoryBytes = 255
)

var (
	repositoryRE = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`)
	})
	tagRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`) })
)

// Reference names an artifact of a registry. [ParseReference] makes it; Tag and Digest
// may be set to other valid values.
type Reference struct {
	Host string // normalized; without the default port of its protocol
	Path string // path of the repository at the host
	Tag  string // may be empty if Digest is not
	// Digest is the digest of the manifest, "sha256:HEX"; may be empty if Tag is not. If
	// it is set, Tag is only a note for people.
	Digest string
}

// ParseReference reads oci://HOST[:PORT]/REPOSITORY[:TAG][@sha256:HEX]. A tag or a digest
// is required: we do not guess which version "latest" is today.
func ParseReference(s string) (Reference, error) {
	r, err := parseReference(s)
	if err != nil {
		return Reference{}, fmt.Errorf("reference %.200q: %w", s, err)
	}
	return r, nil
}

func parseReference(s string) (r Reference, err error) {
	rest, ok := strings.CutPrefix(s, Scheme)
	if !ok {
		return r, errors.New("it does not begin with " + Scheme)
	}
	if len(s) > maxReferenceBytes {
		return r, fmt.Errorf("it has %d bytes, more than %d", len(s), maxReferenceBytes)
	}
	authority, rest, ok := strings.Cut(rest, "/")
	if !ok {
		return r, errors.New("no repository follows the host")
	}
	if r.Host, err = normalHost(authority); err != nil {
		return r, err
	}
	rest, digest, hasDigest := strings.Cut(rest, "@")
	if hasDigest && !sign.ValidDigest(digest) {
		return r, errors.New(`what follows "@" is not sha256: and 64 hexadecimal digits in lower case`)
	}
	r.Digest = digest
	var hasTag bool
	if r.Path, r.Tag, hasTag = strings.Cut(rest, ":"); hasTag && !tagRE().MatchString(r.Tag) {
		return r, fmt.Errorf("%.140q is no tag: at most 128 letters, digits, underscores, dots and hyphens", r.Tag)
	}
	if len(r.Path) > maxRepositoryBytes || !repositoryRE().MatchString(r.Path) {
		return r, fmt.Errorf("%.80q is no repository: small letters and digits, with single dots, hyphens and underscores between them, and slashes", r.Path)
	}
	if !hasTag && !hasDigest {
		return r, fmt.Errorf("it names no version; add a tag, such as %s:1.0.0, or the digest of its manifest", s)
	}
	return r, nil
}

// normalHost returns HOST[:PORT] in its normal form: lower case, without a default port.
func normalHost(authority string) (string, error) {
	o, rest, err := network.ParseOrigin("https://" + authority)
	if err != nil {
		return "", err
	}
	if rest != "" {
		return "", errors.New("what follows the host is not a repository")
	}
	if usesPlainHTTP(o.Host) { // its default port is 80
		if o, _, err = network.ParseOrigin("http://" + authority); err != nil {
			return "", err
		}
		return portOf(o, 80), nil
	}
	return portOf(o, 443), nil
}

// portOf returns HOST:PORT, or HOST alone if the port is defaultPort.
func portOf(o network.Origin, defaultPort uint16) string {
	switch {
	case o.Port != defaultPort:
		return net.JoinHostPort(o.Host.String(), strconv.Itoa(int(o.Port)))
	case o.Host.Addr().Is6():
		return "[" + o.Host.String() + "]"
	}
	return o.Host.String()
}

// usesPlainHTTP reports whether we speak to a host without TLS: only to this machine.
func usesPlainHTTP(h network.Host) bool {
	return h.Name() == "localhost" || h.Addr().IsLoopback()
}

// usesPlainHTTP reports whether we speak to the registry without TLS.
func (r Reference) usesPlainHTTP() bool { return strings.HasPrefix(r.Base(), "http://") }

// Base returns the URL of the registry without a path, which a policy must allow.
func (r Reference) Base() string {
	name := r.Host
	if name == "docker.io" { // its registry has another host
		name = "registry-1.docker.io"
	}
	o, _, err := network.ParseOrigin("https://" + name)
	if err == nil && usesPlainHTTP(o.Host) {
		return "http://" + name
	}
	return "https://" + name
}

// Repository returns HOST/REPOSITORY, to which signatures are bound.
func (r Reference) Repository() string { return r.Host + "/" + r.Path }

// String returns the reference in its normal form.
func (r Reference) String() string { return formatReference(Scheme+r.Repository(), r.Tag, r.Digest) }

func formatReference(place, tag, digest string) string {
	if tag != "" {
		place += ":" + tag
	}
	if digest != "" {
		place += "@" + digest
	}
	return place
}
