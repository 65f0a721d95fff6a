package sign

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

// What cosign itself made with a key, from the tests of sigstore-rs and kubewarden:
// the key, a payload and its signature.
const (
	cosignKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAELKhD7F5OKy77Z582Y6h0u1J3GNA+
kvUsh4eKpd1lwkDAzfFDs7yXEExsEkPPuiQJBelDT68n7PDIWB/QEY7mrA==
-----END PUBLIC KEY-----
`
	cosignPayload   = `{"critical":{"identity":{"docker-reference":"registry-testing.svc.lan/busybox"},"image":{"docker-manifest-digest":"sha256:f3cfc9d0dbf931d3db4685ec659b7ac68e2a578219da4aae65427886e649b06b"},"type":"cosign container image signature"},"optional":null}`
	cosignSignature = "MEYCIQDWWxPQa3XFUsPbyTY+n+bZu/6Pwhg5WwyYDQtEfQho9wIhAPkKW7eub8b7BX+YbbRac8TwwIrK5KxvdtQ6NuoD+ivW"
)

func TestASignatureThatCosignMadeIsVerified(t *testing.T) {
	key, err := ParsePublicKeyPEM([]byte(cosignKey))
	if err != nil {
		t.Fatal(err)
	}
	c := Cosign{[]byte(cosignPayload), cosignSignature}
	got, by, err := VerifyCosign(c, []PublicKey{generate(t, Ed25519).Public(), key})
	want := CosignStatement{"registry-testing.svc.lan/busybox", "sha256:f3cfc9d0dbf931d3db4685ec659b7ac68e2a578219da4aae65427886e649b06b"}
	if err != nil || got != want || by != key {
		t.Errorf("%+v by %v, %v", got, by, err)
	}
	for i := range c.Payload {
		flipped := []byte(cosignPayload)
		flipped[i] ^= 1
		if got, by, err := VerifyCosign(Cosign{flipped, c.Signature}, []PublicKey{key}); !errors.Is(err, ErrNotSigned) {
			t.Errorf("byte %d of the payload flipped: %+v by %v, %v", i, got, by, err)
		}
	}
	for i := range c.Signature {
		for bit := range 8 {
			flipped := []byte(cosignSignature)
			flipped[i] ^= 1 << bit
			if got, by, err := VerifyCosign(Cosign{c.Payload, string(flipped)}, []PublicKey{key}); !errors.Is(err, ErrNotSigned) {
				t.Errorf("bit %d of byte %d of the signature flipped: %+v by %v, %v", bit, i, got, by, err)
			}
		}
	}
}

func TestAPayloadOfCosignIsReadStrictly(t *testing.T) {
	const hash = "sha256:f3cfc9d0dbf931d3db4685ec659b7ac68e2a578219da4aae65427886e649b06b"
	good := CosignStatement{"registry-testing.svc.lan/busybox", hash}
	replaced := func(old, new string) string { return strings.Replace(cosignPayload, old, new, 1) }
	for name, c := range map[string]struct {
		payload string
		want    CosignStatement
		says    string
	}{
		"as it is":                           {cosignPayload, good, ""},
		"without optional":                   {replaced(`,"optional":null`, ""), good, ""},
		"with annotations":                   {replaced(`null`, `{"creator":"x","timestamp":17}`), good, ""},
		"from Docker Hub":                    {replaced("registry-testing.svc.lan", "index.docker.io/library"), CosignStatement{"docker.io/library/busybox", hash}, ""},
		"another type":                       {replaced("cosign container image signature", "atomic container signature"), CosignStatement{}, "not a"},
		"a tag":                              {replaced("busybox", "busybox:1"), CosignStatement{}, "docker-reference"},
		"no repository":                      {replaced("registry-testing.svc.lan/busybox", ""), CosignStatement{}, "docker-reference"},
		"another hash":                       {replaced("sha256:", "sha512:"), CosignStatement{}, "docker-manifest-digest"},
		"something critical":                 {replaced(`"type":`, `"only":"linux","type":`), CosignStatement{}, "critical in it is unknown"},
		"something critical of the identity": {replaced(`"docker-reference":`, `"only":"linux","docker-reference":`), CosignStatement{}, "critical in it is unknown"},
		"something critical of the image":    {replaced(`"docker-manifest-digest":`, `"only":"linux","docker-manifest-digest":`), CosignStatement{}, "critical in it is unknown"},
		"a second digest":                    {replaced(`"docker-manifest-digest":`, `"docker-manifest-digest":"x","docker-manifest-digest":`), CosignStatement{}, "twice"},
		"a digest in another case":           {replaced("docker-manifest-digest", "Docker-Manifest-Digest"), CosignStatement{}, "docker-manifest-digest"},
		"two payloads":                       {cosignPayload + cosignPayload, CosignStatement{}, "not one complete JSON value"},
		"a huge one":                         {cosignPayload + strings.Repeat(" ", 100_000), CosignStatement{}, "more than"},
		"nothing":                            {"", CosignStatement{}, "not one complete JSON value"},
		"a statement of another maker":       {`{"type":"x"}`, CosignStatement{}, "not a"},
	} {
		for _, a := range []Algorithm{Ed25519, ECDSAP256} {
			k := generate(t, a)
			sig, err := k.sign([]byte(c.payload)) // as cosign does: the payload, or its SHA-256
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := VerifyCosign(Cosign{[]byte(c.payload), base64.StdEncoding.EncodeToString(sig)}, []PublicKey{k.Public()})
			if got != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s: %+v, %v", name, a, got, err)
			}
		}
	}
}

func FuzzCosignPayload(f *testing.F) {
	f.Add([]byte(cosignPayload))
	f.Add([]byte(`{"critical":{"identity":{"docker-reference":"index.docker.io/index.docker.io/a"},"image":{},"type":""}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parseCosign(data)
		if err == nil && (!ValidRepository(s.Repository) || !ValidDigest(s.ManifestDigest)) {
			t.Errorf("%+v", s)
		}
	})
}
