package sign

import (
	"errors"
	"fmt"
	"slices"
)

// Types in the signatures of cosign 3, from the outermost document to the innermost.
const (
	BundleType      = "application/vnd.dev.sigstore.bundle.v0.3+json"
	inTotoType      = "application/vnd.in-toto+json"
	inTotoStatement = "https://in-toto.io/Statement/v1"
	CosignPredicate = "https://sigstore.dev/cosign/sign/v1"
)

// UnsupportedFormError names the format of a signature that we cannot read, in words of
// others.
type UnsupportedFormError string

func (e UnsupportedFormError) Error() string {
	return "it is signed in a form that is not read: " + string(e)
}

// VerifyBundle is [VerifyCosign] for a sigstore bundle that cosign 3 made with a key: a
// DSSE envelope with one signature of a statement about one manifest. For other bundles
// the error is an [UnsupportedFormError]. The log entry and the time in it are ignored.
func VerifyBundle(bundle []byte, keys []PublicKey) (s CosignStatement, by PublicKey, err error) {
	payload, sig, err := openBundle(bundle)
	i := slices.IndexFunc(keys, func(k PublicKey) bool { return k.verify(pae(inTotoType, payload), sig) })
	if err == nil && i < 0 {
		err = ErrNotSigned
	}
	if err == nil {
		by = keys[i]
		s.ManifestDigest, err = parseInToto(payload)
	}
	if err != nil {
		return CosignStatement{}, PublicKey{}, fmt.Errorf("sigstore bundle: %w", err)
	}
	return s, by, nil
}

// openBundle returns the payload of the envelope and its signature. The signature is nil
// if it is too long for our kinds of keys.
func openBundle(bundle []byte) (payload, sig []byte, err error) {
	o, err := parse(bundle)
	if err != nil {
		return nil, nil, err
	}
	media, kind, list := lookup[string](o, "mediaType"), lookup[string](o, "dsseEnvelope", "payloadType"), lookup[[]any](o, "dsseEnvelope", "signatures")
	switch {
	case media != BundleType || kind != inTotoType:
		return nil, nil, UnsupportedFormError(fmt.Sprintf("%.100q with %.100q", media, kind))
	case lookup[object](o, "verificationMaterial", "publicKey") == nil:
		return nil, nil, UnsupportedFormError("a sigstore bundle with a certificate")
	case len(list) != 1:
		return nil, nil, fmt.Errorf("it has %d signatures, and not one", len(list))
	}
	one, _ := list[0].(object)
	if sig, err = decode64(lookup[string](one, "sig"), maxSignatureBytes); err != nil {
		return nil, nil, nil // only other kinds of keys make longer signatures
	}
	payload, err = decode64(lookup[string](o, "dsseEnvelope", "payload"), maxBytes)
	return payload, sig, err
}

// parseInToto returns the digest of the manifest in a statement of cosign. Unknown keys
// are allowed, as the specification demands.
func parseInToto(data []byte) (string, error) {
	o, err := parse(data)
	if err != nil {
		return "", err
	}
	kind, predicate, subjects := lookup[string](o, "_type"), lookup[string](o, "predicateType"), lookup[[]any](o, "subject")
	switch {
	case kind != inTotoStatement || len(subjects) != 1:
		return "", fmt.Errorf("it is a %.80q about %d artifacts, not a %q about one", kind, len(subjects), inTotoStatement)
	case predicate != CosignPredicate:
		return "", UnsupportedFormError(fmt.Sprintf("a sigstore attestation of %.100q", predicate))
	}
	subject, _ := subjects[0].(object)
	digest := "sha256:" + lookup[string](subject, "digest", "sha256")
	if !ValidDigest(digest) {
		return "", errors.New("its subject has no SHA-256 of 64 hexadecimal digits in lower case")
	}
	return digest, nil
}

// lookup returns the value at a path of keys. It returns the zero T if there is no value, or
// if the value has another type.
func lookup[T any](o object, path ...string) T {
	last := len(path) - 1
	for _, key := range path[:last] {
		o, _ = o[key].(object)
	}
	t, _ := o[path[last]].(T)
	return t
}
