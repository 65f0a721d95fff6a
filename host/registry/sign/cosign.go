package sign

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// cosignType is the type in every payload of cosign.
const cosignType = "cosign container image signature"

// CosignStatement is the content of a cosign signature. It names an OCI manifest, and so,
// by digest, the module in the manifest. It states no name and no version.
type CosignStatement struct {
	// Repository is HOST/REPOSITORY. Docker Hub is docker.io here; cosign writes
	// index.docker.io. Empty: the signature is from a bundle, which names none.
	Repository     string
	ManifestDigest string // "sha256:HEX"
}

// VerifyCosign returns the content of a signature and the key that made the signature. The
// error is [ErrNotSigned] if none of the keys did; the payload is parsed only after the
// signature was verified. Signatures with certificates and the transparency log are not
// verified: they are [ErrNotSigned], too.
func VerifyCosign(c Cosign, keys []PublicKey) (CosignStatement, PublicKey, error) {
	if len(c.Payload) > maxBytes {
		return CosignStatement{}, PublicKey{}, fmt.Errorf("cosign: the payload has more than %d bytes", maxBytes)
	}
	sig, err := decode64(c.Signature, maxSignatureBytes) // only other kinds of keys make longer signatures
	i := slices.IndexFunc(keys, func(k PublicKey) bool { return k.verify(c.Payload, sig) })
	if err != nil || i < 0 {
		return CosignStatement{}, PublicKey{}, ErrNotSigned
	}
	s, err := parseCosign(c.Payload)
	if err != nil {
		return CosignStatement{}, PublicKey{}, fmt.Errorf("cosign: %w", err)
	}
	return s, keys[i], nil
}

// parseCosign reads a payload. Its specification allows unknown keys beside "critical",
// and demands that unknown keys within "critical" are refused.
func parseCosign(payload []byte) (s CosignStatement, err error) {
	o, err := parse(payload)
	if err != nil {
		return s, err
	}
	critical := lookup[object](o, "critical")
	identity, image, kind := lookup[object](critical, "identity"), lookup[object](critical, "image"), lookup[string](critical, "type")
	repository, digest := lookup[string](identity, "docker-reference"), lookup[string](image, "docker-manifest-digest")
	if path, hub := strings.CutPrefix(repository, "index.docker.io/"); hub {
		repository = "docker.io/" + path
	}
	switch {
	case kind != cosignType:
		return s, fmt.Errorf("it is a %.80q, not a %q", kind, cosignType)
	case len(critical) != 3 || len(identity) != 1 || len(image) != 1:
		return s, errors.New("something critical in it is unknown")
	case !ValidRepository(repository):
		return s, fmt.Errorf("docker-reference %.80q is not HOST/REPOSITORY in lower case", repository)
	case !ValidDigest(digest):
		return s, errors.New(`docker-manifest-digest is not "sha256:" and 64 hexadecimal digits in lower case`)
	}
	return CosignStatement{repository, digest}, nil
}
