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

// Scheme is how a reference begins.
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

// Reference names an artifact of a registry. It is made by [ParseReference]; Tag and
// Digest may be set to others that are valid.
type Reference struct {
	Host string // in its one form, with the port unless it is the protocol's own
	Path string // of the repository at the host
	Tag  string // may be empty if Digest is not
	// Digest is that of the manifest, "sha256:HEX". If there is one, Tag only says
	// which artifact a person had in mind.
	Digest string
}

// ParseReference reads oci://HOST[:PORT]/REPOSITORY[:TAG][@sha256:HEX]. One of tag
// and digest has to be there: which version "latest" is today is not for us to
// guess.
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

// normalHost brings HOST[:PORT] into its one form.
func normalHost(authority string) (string, error) {
	o, rest, err := network.ParseOrigin("https://" + authority)
	if err != nil {
		return "", err
	}
	if rest != "" {
		return "", errors.New("what follows the host is not a repository")
	}
	if usesPlainHTTP(o.Host) { // the port of the protocol is another one
		if o, _, err = network.ParseOrigin("http://" + authority); err != nil {
			return "", err
		}
		return portOf(o, 80), nil
	}
	return portOf(o, 443), nil
}

func portOf(o network.Origin, own uint16) string {
	switch {
	case o.Port != own:
		return net.JoinHostPort(o.Host.String(), strconv.Itoa(int(o.Port)))
	case o.Host.Addr().Is6():
		return "[" + o.Host.String() + "]"
	}
	return o.Host.String()
}

// usesPlainHTTP reports whether a host is spoken to without TLS: only this machine is.
func usesPlainHTTP(h network.Host) bool {
	return h.Name() == "localhost" || h.Addr().IsLoopback()
}

// usesPlainHTTP reports whether the registry is spoken to without TLS.
func (r Reference) usesPlainHTTP() bool { return strings.HasPrefix(r.Base(), "http://") }

// Base is the URL of the registry, without a path: what a network has to allow.
func (r Reference) Base() string {
	name := r.Host
	if name == "docker.io" { // which is served from there
		name = "registry-1.docker.io"
	}
	o, _, err := network.ParseOrigin("https://" + name)
	if err == nil && usesPlainHTTP(o.Host) {
		return "http://" + name
	}
	return "https://" + name
}

// Repository is HOST/REPOSITORY, what signatures are bound to.
func (r Reference) Repository() string { return r.Host + "/" + r.Path }

// String is the reference in its one form.
func (r Reference) String() string { return formatReference(Scheme+r.Repository(), r.Tag, r.Digest) }

// formatReference is PLACE[:TAG][@DIGEST].
func formatReference(place, tag, digest string) string {
	if tag != "" {
		place += ":" + tag
	}
	if digest != "" {
		place += "@" + digest
	}
	return place
}
