package sign

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// What cosign 3.1.3 left in a registry: the key, and the bundle for a manifest.
const (
	bundleKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEAEyLS/AHJvHZiPCJy4otD93PD8qy
gUJ2ohymB7r2XkdxoZJtq0rwb4XRgP3afJmTgl3TNfgLgJrKmOVbyh0+1Q==
-----END PUBLIC KEY-----
`
	bundleJSON   = `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":"fbDo46eeflvWHPSHwLu2hyz6GMGaGGyji+38qYE/WJ4="}},"dsseEnvelope":{"payload":"eyJfdHlwZSI6Imh0dHBzOi8vaW4tdG90by5pby9TdGF0ZW1lbnQvdjEiLCJzdWJqZWN0IjpbeyJkaWdlc3QiOnsic2hhMjU2IjoiYThiZGI2YzRlM2E0ZjExMzAzMTNjYjBhOWQxYWMzODM0MzViMjMyNDM4OTBjNGJlZTAxZTIwNDAwY2Y3NmU4MyJ9LCJhbm5vdGF0aW9ucyI6e319XSwicHJlZGljYXRlVHlwZSI6Imh0dHBzOi8vc2lnc3RvcmUuZGV2L2Nvc2lnbi9zaWduL3YxIiwicHJlZGljYXRlIjp7fX0=","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"MEUCIDQB6ekj7yqrpPrBe7TY+0g7vpyDytSC8OPQswhirioCAiEAvbakwkUjJaZ/SySjFiSTFDwEguwN1P6a6/c4708lFEo="}]}}`
	bundleDigest = "sha256:a8bdb6c4e3a4f1130313cb0a9d1ac383435b23243890c4bee01e20400cf76e83"
)

func TestABundleThatCosignMadeIsVerified(t *testing.T) {
	key, err := ParsePublicKeyPEM([]byte(bundleKey))
	if err != nil {
		t.Fatal(err)
	}
	got, by, err := VerifyBundle([]byte(bundleJSON), []PublicKey{generate(t, Ed25519).Public(), key})
	if err != nil || got != (CosignStatement{ManifestDigest: bundleDigest}) || by != key {
		t.Errorf("%+v by %v, %v", got, by, err)
	}
	if _, _, err := VerifyBundle([]byte(bundleJSON), []PublicKey{generate(t, ECDSAP256).Public()}); !errors.Is(err, ErrNotSigned) {
		t.Errorf("with another key: %v", err)
	}
	// Whatever of the payload and of its signature is changed, the key did not sign that.
	inside := strings.Index(bundleJSON, "dsseEnvelope")
	hint := strings.Index(bundleJSON, "hint")
	for i := range bundleJSON {
		for bit := range 8 {
			flipped := []byte(bundleJSON)
			flipped[i] ^= 1 << bit
			got, _, err := VerifyBundle(flipped, []PublicKey{key})
			if err == nil && (i > inside || i < hint || i > hint+60 || got.ManifestDigest != bundleDigest) {
				t.Errorf("bit %d of byte %d, %q for %q: %+v", bit, i, flipped[i], bundleJSON[i], got)
			}
		}
	}
}

func TestABundleIsReadStrictly(t *testing.T) {
	const statement = `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"a8bdb6c4e3a4f1130313cb0a9d1ac383435b23243890c4bee01e20400cf76e83"},"annotations":{}}],"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{}}`
	type bundle struct{ statement, kind, signedAs, json string }
	in := func(old, new string) func(*bundle) {
		return func(b *bundle) { b.statement = strings.Replace(b.statement, old, new, 1) }
	}
	around := func(old, new string) func(*bundle) {
		return func(b *bundle) { b.json = strings.Replace(b.json, old, new, 1) }
	}
	for name, c := range map[string]struct {
		signed  func(*bundle) // before it is signed
		changed func(*bundle) // after
		says    string        // empty: it is verified
		form    string        // of a FormError
	}{
		"as it is":                        {},
		"with a name":                     {signed: in(`"annotations":{}`, `"name":"x","annotations":{"a":"b"}`)},
		"with another hash beside":        {signed: in(`"digest":{`, `"digest":{"sha512":"x",`)},
		"with a log":                      {changed: around(`"publicKey":`, `"tlogEntries":[{"logIndex":"1"}],"publicKey":`)},
		"with the name of a key":          {changed: around(`{"sig":`, `{"keyid":"x","sig":`)},
		"of another manifest, afterwards": {changed: in("a8bd", "a8be"), says: ErrNotSigned.Error()},
		"of another type than is signed":  {signed: func(b *bundle) { b.signedAs = "text/plain" }, says: ErrNotSigned.Error()},
		"signed without its type":         {signed: func(b *bundle) { b.signedAs = "-" }, says: ErrNotSigned.Error()},
		"of another type":                 {signed: func(b *bundle) { b.kind, b.signedAs = "text/plain", "text/plain" }, form: "text/plain"},
		"an attestation":                  {signed: in("https://sigstore.dev/cosign/sign/v1", "https://slsa.dev/provenance/v1"), form: "https://slsa.dev/provenance/v1"},
		"an attestation of a long name":   {signed: in("https://sigstore.dev/cosign/sign/v1", strings.Repeat("\\u001b", 5000)), form: `a sigstore attestation of "\x1b`},
		"with a certificate":              {changed: around("publicKey", "certificate"), form: "with a certificate"},
		"of a file":                       {changed: around("dsseEnvelope", "messageSignature"), form: `with ""`},
		"of an older version":             {changed: around("bundle.v0.3", "bundle.v0.2"), form: "bundle.v0.2"},
		"with two signatures":             {changed: around(`"signatures":[`, `"signatures":[{"sig":"AAAA"},`), says: "it has 2 signatures"},
		"with none":                       {changed: func(b *bundle) { b.json = b.json[:strings.Index(b.json, `[{"sig`)] + "[]}}" }, says: "it has 0 signatures"},
		"with a long signature":           {changed: around(`"sig":"`, `"sig":"`+strings.Repeat("AAAA", 90)), says: ErrNotSigned.Error()},
		"two of them":                     {changed: func(b *bundle) { b.json += b.json }, says: "not one complete JSON value"},
		"with a key twice":                {changed: around(`"payload":`, `"payload":"","payload":`), says: "twice"},
		"cut off":                         {changed: func(b *bundle) { b.json = b.json[:len(b.json)-9] }, says: "not valid JSON"},
		"a huge one":                      {changed: around(`{"mediaType"`, strings.Repeat(" ", 100_000)+`{"mediaType"`), says: "more than 65536 bytes"},
		"a deep one":                      {changed: around(`"publicKey":`, `"x":`+strings.Repeat("[", 70)+strings.Repeat("]", 70)+`,"publicKey":`), says: "nests deeper than 64"},
		"a deep statement":                {signed: in(`"predicate":{}`, `"predicate":`+strings.Repeat("[", 70)+strings.Repeat("]", 70)), says: "nests deeper than 64"},
		"a statement of another version":  {signed: in("Statement/v1", "Statement/v0.1"), says: "Statement/v0.1"},
		"of no manifest":                  {signed: in(`[{"digest"`, `[],"x":[{"digest"`), says: "about 0 artifacts"},
		"of two manifests":                {signed: in(`"subject":[`, `"subject":[{"digest":{"sha256":"`+strings.Repeat("0", 64)+`"}},`), says: "about 2 artifacts"},
		"of another hash":                 {signed: in(`"sha256":`, `"sha512":`), says: "no SHA-256"},
		"of a digest in capitals":         {signed: in("a8bdb", "A8BDB"), says: "no SHA-256"},
		"of a subject that is a text":     {signed: in(`[{"digest"`, `["x"],"x":[{"digest"`), says: "no SHA-256"},
		"of no statement":                 {signed: func(b *bundle) { b.statement = "x" }, says: "not valid JSON"},
	} {
		for _, a := range []Algorithm{Ed25519, ECDSAP256} {
			k := generate(t, a)
			b := bundle{statement: statement, kind: inTotoType, signedAs: inTotoType}
			if c.signed != nil {
				c.signed(&b)
			}
			message := pae(b.signedAs, []byte(b.statement))
			if b.signedAs == "-" {
				message = []byte(b.statement)
			}
			sig, err := k.sign(message)
			if err != nil {
				t.Fatal(err)
			}
			encode := func() string {
				return fmt.Sprintf(`{"mediaType":%q,"verificationMaterial":{"publicKey":{"hint":""}},"dsseEnvelope":{"payload":%q,"payloadType":%q,"signatures":[{"sig":%q}]}}`,
					BundleType, base64.StdEncoding.EncodeToString([]byte(b.statement)), b.kind, base64.StdEncoding.EncodeToString(sig))
			}
			b.json = encode()
			if c.changed != nil {
				before := b.statement
				if c.changed(&b); b.statement != before {
					b.json = encode()
				}
			}
			got, by, err := VerifyBundle([]byte(b.json), []PublicKey{k.Public()})
			form, isForm := errors.AsType[UnsupportedFormError](err)
			switch {
			case c.form != "" && (!isForm || len(form) > 500 || !strings.Contains(string(form), c.form)),
				c.says != "" && (err == nil || isForm || !strings.Contains(err.Error(), c.says)),
				c.form+c.says == "" && (err != nil || by != k.Public() || got.ManifestDigest != bundleDigest),
				err != nil && got != CosignStatement{}:
				t.Errorf("%s, %s: %+v, %v", name, a, got, err)
			}
			if err == nil && !json.Valid([]byte(b.json)) {
				t.Errorf("%s: it is no JSON", name)
			}
		}
	}
}

func FuzzBundle(f *testing.F) {
	f.Add([]byte(bundleJSON))
	key, err := ParsePublicKeyPEM([]byte(bundleKey))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, _, err := VerifyBundle(data, []PublicKey{key}); err == nil && s.ManifestDigest != bundleDigest {
			t.Errorf("%+v", s)
		}
	})
}
