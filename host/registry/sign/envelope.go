package sign

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// PayloadType is the media type of a statement in its envelope.
const PayloadType = "application/vnd.stockade.module.v1+json"

const (
	maxSignatures     = 16
	maxSignatureBytes = 128 // an ECDSA signature on P-256 has at most 72
)

// ErrNotSigned is returned when none of the given keys has made a signature.
var ErrNotSigned = errors.New("none of these keys has signed it")

type envelopeJSON struct {
	PayloadType string          `json:"payloadType"`
	Payload     string          `json:"payload"` // base64
	Signatures  []signatureJSON `json:"signatures"`
}

type signatureJSON struct {
	KeyID     string `json:"keyid"`
	Sig       string `json:"sig"`        // base64
	PublicKey string `json:"public_key"` // our extension: with it we can name a key that nobody knows yet
}

// pae returns the bytes that DSSE signs: the type and the payload with their lengths.
func pae(kind string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(payload), payload)
}

// Sign returns an envelope of a statement with the signatures of 1 to 16 keys.
func Sign(st Statement, keys ...PrivateKey) ([]byte, error) {
	payload, err := st.marshal()
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	if len(keys) == 0 || len(keys) > maxSignatures {
		return nil, fmt.Errorf("sign: %d keys; 1 to %d can sign", len(keys), maxSignatures)
	}
	e := envelopeJSON{PayloadType: PayloadType, Payload: base64.StdEncoding.EncodeToString(payload)}
	for _, k := range keys {
		sig, err := k.sign(pae(PayloadType, payload))
		if err != nil {
			return nil, fmt.Errorf("sign: %w", err)
		}
		e.Signatures = append(e.Signatures, signatureJSON{k.Public().ID(), base64.StdEncoding.EncodeToString(sig), k.Public().String()})
	}
	data, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return append(data, '\n'), nil
}

// Envelope is a well-formed envelope. Only [Envelope.Verify] returns its statement.
type Envelope struct {
	message    []byte // the bytes that are signed
	statement  Statement
	signatures []signature
}

type signature struct {
	sig        []byte
	claimedKey PublicKey // the key that the signature names as its own; zero: it names none
}

// Open reads the envelope of a statement about a module: at most 64 KiB and 16 signatures,
// each value in its canonical form. If a signature names its key, the key must have made it:
// so a damaged signature is refused, and not taken for a missing one.
func Open(envelope []byte) (*Envelope, error) {
	s, err := open(envelope)
	if err != nil {
		return nil, fmt.Errorf("envelope: %w", err)
	}
	return s, nil
}

func open(envelope []byte) (*Envelope, error) {
	o, err := parse(envelope)
	if err != nil {
		return nil, err
	}
	kind, err1 := takeKey[string](o, "payloadType", false)
	encoded, err2 := takeKey[string](o, "payload", false)
	list, err3 := takeKey[[]any](o, "signatures", false)
	payload, err4 := decode64(encoded, maxBytes)
	switch err := cmp.Or(err1, err2, err3, err4, checkNoneLeft(o)); {
	case err != nil:
		return nil, err
	case kind != PayloadType:
		return nil, fmt.Errorf("its content is a %.80q, not a %q", kind, PayloadType)
	case len(list) == 0 || len(list) > maxSignatures:
		return nil, fmt.Errorf("it has %d signatures; 1 to %d are accepted", len(list), maxSignatures)
	}
	s := &Envelope{message: pae(PayloadType, payload)}
	if s.statement, err = parseStatement(payload); err != nil {
		return nil, fmt.Errorf("statement: %w", err)
	}
	for i, e := range list {
		sig, err := openSignature(e)
		if err != nil {
			return nil, fmt.Errorf("signature %d: %w", i+1, err)
		}
		if sig.claimedKey != (PublicKey{}) && !sig.claimedKey.verify(s.message, sig.sig) {
			return nil, fmt.Errorf("signature %d: it says that it is by %s, and that key did not sign this", i+1, sig.claimedKey.ID())
		}
		s.signatures = append(s.signatures, sig)
	}
	return s, nil
}

func openSignature(v any) (s signature, err error) {
	o, ok := v.(object)
	if !ok {
		return s, errors.New("it is not an object")
	}
	id, err1 := takeKey[string](o, "keyid", true)
	encoded, err2 := takeKey[string](o, "sig", false)
	key, err3 := takeKey[string](o, "public_key", true)
	sig, err4 := decode64(encoded, maxSignatureBytes)
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		return s, err
	}
	s.sig = sig
	if key != "" {
		if s.claimedKey, err = ParsePublicKey(key); err != nil {
			return s, err
		}
		if id != "" && id != s.claimedKey.ID() {
			return s, fmt.Errorf("its keyid is %.80q, and that of its key is %s", id, s.claimedKey.ID())
		}
	}
	return s, checkNoneLeft(o)
}

// Verify returns the statement, and those of the given keys that have signed it, each key
// once. The keys that the envelope names are ignored. If none of the given keys has signed,
// the error is [ErrNotSigned].
func (s *Envelope) Verify(keys []PublicKey) (Statement, []PublicKey, error) {
	var by []PublicKey
	for _, k := range keys {
		if !slices.Contains(by, k) && slices.ContainsFunc(s.signatures, func(sig signature) bool { return k.verify(s.message, sig.sig) }) {
			by = append(by, k)
		}
	}
	if len(by) == 0 {
		return Statement{}, nil, ErrNotSigned
	}
	return s.statement, by, nil
}

// ClaimedKeys returns the keys that the envelope names, each once. They have signed it, but
// anybody can make such a key: show them to a person, and do not trust them.
func (s *Envelope) ClaimedKeys() []PublicKey {
	var out []PublicKey
	for _, sig := range s.signatures {
		if sig.claimedKey != (PublicKey{}) && !slices.Contains(out, sig.claimedKey) {
			out = append(out, sig.claimedKey)
		}
	}
	return out
}
