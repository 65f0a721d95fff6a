package sign

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
)

// Algorithm is the signature algorithm of a key.
type Algorithm string

const (
	Ed25519   Algorithm = "ed25519"
	ECDSAP256 Algorithm = "ecdsa-p256" // with SHA-256; the algorithm of cosign's keys
)

// maxKeyBytes limits the size of a PEM file with a key; a larger one is refused. No key that
// we accept is as long.
const maxKeyBytes = 4 << 10

// PublicKey is a key that verifies signatures. Keys can be compared with ==. The zero key
// verifies nothing.
type PublicKey struct {
	algorithm Algorithm
	raw       string // ed25519: 32 bytes; ECDSA: the uncompressed point, 65 bytes
}

// publicKey converts a key of the standard library. It refuses algorithms other than ed25519
// and ECDSA on P-256, and weak keys, for which anybody can make signatures.
func publicKey(key crypto.PublicKey) (PublicKey, error) {
	switch key := key.(type) {
	case ed25519.PublicKey:
		if len(key) != ed25519.PublicKeySize || weak(key) {
			return PublicKey{}, errors.New("it is an ed25519 key with which anybody can sign")
		}
		return PublicKey{Ed25519, string(key)}, nil
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() {
			return PublicKey{}, errors.New("its curve is not P-256")
		}
		raw, err := key.Bytes()
		if err != nil {
			return PublicKey{}, err
		}
		return PublicKey{ECDSAP256, string(raw)}, nil
	}
	return PublicKey{}, fmt.Errorf("it is neither %s nor %s", Ed25519, ECDSAP256)
}

// weak reports whether an ed25519 key is a point of small order, such as the point of all
// zeros: for such points, signatures can be made without a private key. It also reports every
// encoding that is not the only one of its point; in practice only such points have several.
func weak(key []byte) bool {
	le := slices.Clone(key)
	le[31] &= 0x7f // the sign of x
	slices.Reverse(le)
	y := new(big.Int).SetBytes(le)
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	if y.Cmp(p) >= 0 {
		return true
	}
	// The order is 1 or 2 for y = 1 or -1, and 4 for y = 0. It is 8 if doubling leads to
	// y = 0, that is, if y² = -x². With the equation of the curve, whose d is
	// -121665/121666, this gives 121665·y⁴ - 2·121666·y² + 121666 = 0.
	y2 := new(big.Int).Mul(y, y)
	y2.Mod(y2, p)
	eight := new(big.Int).Mul(y2, y2)
	eight.Mul(eight, big.NewInt(121665))
	eight.Sub(eight, new(big.Int).Mul(y2, big.NewInt(2*121666)))
	eight.Add(eight, big.NewInt(121666))
	eight.Mod(eight, p)
	return y2.Sign() == 0 || y2.IsInt64() && y2.Int64() == 1 || eight.Sign() == 0
}

// ParsePublicKey reads the text form of a key: the algorithm, a colon, and the raw key in
// base64, which is the 32 bytes of an ed25519 key or the 65 bytes of an uncompressed
// ECDSA point. Each key has one text.
func ParsePublicKey(text string) (PublicKey, error) {
	algorithm, encoded, _ := strings.Cut(text, ":")
	raw, err := decode64(encoded, 65)
	if err != nil {
		return PublicKey{}, fmt.Errorf(`%.80q is not a key such as "ed25519:" and base64: %w`, text, err)
	}
	var key crypto.PublicKey
	switch Algorithm(algorithm) {
	case Ed25519:
		if len(raw) != ed25519.PublicKeySize {
			return PublicKey{}, fmt.Errorf("%.80q has %d bytes; an ed25519 key has %d", text, len(raw), ed25519.PublicKeySize)
		}
		key = ed25519.PublicKey(raw)
	case ECDSAP256:
		if key, err = ecdsa.ParseUncompressedPublicKey(elliptic.P256(), raw); err != nil {
			return PublicKey{}, fmt.Errorf("%.80q is no point of P-256", text)
		}
	default:
		return PublicKey{}, fmt.Errorf("%.80q begins with neither %s: nor %s:", text, Ed25519, ECDSAP256)
	}
	k, err := publicKey(key)
	if err != nil {
		return PublicKey{}, fmt.Errorf("%.80q: %w", text, err)
	}
	return k, nil
}

// ParsePublicKeyPEM reads one block PUBLIC KEY, the format of cosign and openssl.
func ParsePublicKeyPEM(data []byte) (PublicKey, error) {
	der, err := onePEM(data, "PUBLIC KEY")
	if err != nil {
		return PublicKey{}, fmt.Errorf("public key: %w", err)
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return PublicKey{}, fmt.Errorf("public key: %w", err)
	}
	k, err := publicKey(key)
	if err != nil {
		return PublicKey{}, fmt.Errorf("public key: %w", err)
	}
	return k, nil
}

// onePEM returns the content of the only block of a PEM file. It is an error if the block is
// not of this kind, or if the file holds anything else.
func onePEM(data []byte, kind string) ([]byte, error) {
	if len(data) > maxKeyBytes {
		return nil, fmt.Errorf("it has more than %d bytes", maxKeyBytes)
	}
	block, rest := pem.Decode(data)
	switch {
	case block == nil:
		return nil, fmt.Errorf("there is no -----BEGIN %s----- in it", kind)
	case block.Type != kind:
		return nil, fmt.Errorf("it is a %.40q, not a %q", block.Type, kind)
	case len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0:
		return nil, fmt.Errorf("there is more in it than one %q", kind)
	}
	return block.Bytes, nil
}

// std returns the key as a type of the standard library; nil for the zero key.
func (k PublicKey) std() crypto.PublicKey {
	switch k.algorithm {
	case Ed25519:
		return ed25519.PublicKey(k.raw)
	case ECDSAP256:
		if key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), []byte(k.raw)); err == nil {
			return key
		}
	}
	return nil
}

// String returns the text form, which [ParsePublicKey] reads.
func (k PublicKey) String() string {
	return string(k.algorithm) + ":" + base64.StdEncoding.EncodeToString([]byte(k.raw))
}

// ValidID reports whether a text has the form of a key's ID, see [PublicKey.ID].
func ValidID(s string) bool {
	algorithm, hex, _ := strings.Cut(s, ":")
	return (algorithm == string(Ed25519) || algorithm == string(ECDSAP256)) && isHex(hex, 32)
}

// ID returns a short name that is made from the key: its algorithm, a colon, and the first 32
// hex digits of the SHA-256 of its SubjectPublicKeyInfo in DER; empty for the zero key.
func (k PublicKey) ID() string {
	der, err := x509.MarshalPKIXPublicKey(k.std())
	if err != nil {
		return "" // the zero key
	}
	sum := sha256.Sum256(der)
	return string(k.algorithm) + ":" + hex.EncodeToString(sum[:16])
}

// PEM returns the form that [ParsePublicKeyPEM] reads; nil for the zero key.
func (k PublicKey) PEM() []byte {
	der, err := x509.MarshalPKIXPublicKey(k.std())
	if err != nil {
		return nil // the zero key
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// verify reports whether the key has signed a message. The standard library accepts only
// ed25519 signatures whose numbers are reduced, and only ECDSA signatures in DER.
func (k PublicKey) verify(message, signature []byte) bool {
	switch key := k.std().(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(key, message, signature)
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(message)
		return ecdsa.VerifyASN1(key, sum[:], signature)
	}
	return false
}

// PrivateKey is a key that signs. It prints as the ID of its public key.
type PrivateKey struct {
	signer crypto.Signer
	public PublicKey
}

// Generate returns a new key.
func Generate(algorithm Algorithm) (PrivateKey, error) {
	var signer crypto.Signer
	var err error
	switch algorithm {
	case Ed25519:
		_, signer, err = ed25519.GenerateKey(nil)
	case ECDSAP256:
		signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		err = fmt.Errorf("%.40q is neither %s nor %s", algorithm, Ed25519, ECDSAP256)
	}
	if err != nil {
		return PrivateKey{}, fmt.Errorf("generate a key: %w", err)
	}
	return privateKey(signer)
}

func privateKey(signer crypto.Signer) (PrivateKey, error) {
	public, err := publicKey(signer.Public())
	return PrivateKey{signer, public}, err
}

// ParsePrivateKey reads a private key as PKCS #8 in PEM, without a password.
func ParsePrivateKey(data []byte) (PrivateKey, error) {
	fail := func(err error) (PrivateKey, error) { return PrivateKey{}, fmt.Errorf("private key: %w", err) }
	if bytes.Contains(data, []byte("-----BEGIN ENCRYPTED ")) {
		return fail(errors.New("it is encrypted; write it as PKCS #8 without a password, or sign with the program that made it"))
	}
	der, err := onePEM(data, "PRIVATE KEY")
	if err != nil {
		return fail(err)
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return fail(errors.New("it is not PKCS #8")) // err could show bytes of the key
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return fail(fmt.Errorf("it is neither %s nor %s", Ed25519, ECDSAP256))
	}
	k, err := privateKey(signer)
	if err != nil {
		return fail(err)
	}
	return k, nil
}

// PEM returns the key as PKCS #8, for a file that nobody else can read.
func (k PrivateKey) PEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.signer)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Public returns the key that verifies the signatures of this key.
func (k PrivateKey) Public() PublicKey { return k.public }

// Format writes the public key's ID for every verb: a key must not end up in a log.
func (k PrivateKey) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "private key of "+k.public.ID())
}

func (k PrivateKey) sign(message []byte) ([]byte, error) {
	switch k.public.algorithm {
	case Ed25519:
		return k.signer.Sign(nil, message, crypto.Hash(0))
	case ECDSAP256:
		sum := sha256.Sum256(message)
		return k.signer.Sign(rand.Reader, sum[:], crypto.SHA256)
	}
	return nil, errors.New("there is no key")
}

// decode64 decodes base64. More than limit bytes are an error. It accepts only the canonical
// encoding of the bytes: no line breaks, which the standard decoder would skip.
func decode64(s string, limit int) ([]byte, error) {
	if len(s) > base64.StdEncoding.EncodedLen(limit) {
		return nil, fmt.Errorf("it holds more than %d bytes", limit)
	}
	data, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || strings.ContainsAny(s, "\r\n") {
		return nil, errors.New("it is not padded base64 without line breaks")
	}
	return data, nil
}
