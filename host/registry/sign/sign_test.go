package sign

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func generate(t testing.TB, a Algorithm) PrivateKey {
	t.Helper()
	k, err := Generate(a)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func statement() Statement {
	h := func(c string) string { return strings.Repeat(c, 64) }
	return Statement{
		Repository: "registry.example.org:5000/tools/weather", Name: "weather", Version: "1.2.0", Digest: "sha256:" + h("a"),
		Fingerprint: Fingerprint{h("b"), h("c"), h("d")},
		Issued:      time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Expires: time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC),
	}
}

func signed(t testing.TB, keys ...PrivateKey) []byte {
	t.Helper()
	envelope, err := Sign(statement(), keys...)
	if err != nil {
		t.Fatal(err)
	}
	return envelope
}

func TestKeysAreReadAsTheyWereWritten(t *testing.T) {
	for _, a := range []Algorithm{Ed25519, ECDSAP256} {
		k := generate(t, a)
		if got, err := ParsePublicKey(k.Public().String()); err != nil || got != k.Public() {
			t.Errorf("%s: %v, %v", k.Public(), got, err)
		}
		if got, err := ParsePublicKeyPEM(k.Public().PEM()); err != nil || got != k.Public() {
			t.Errorf("%s: from PEM: %v, %v", k.Public(), got, err)
		}
		private, err := k.PEM()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParsePrivateKey(private)
		if err != nil || again.Public() != k.Public() {
			t.Errorf("%s: private: %v, %v", k.Public(), again, err)
		}
		if id := k.Public().ID(); !ValidID(id) || !strings.HasPrefix(id, string(a)+":") || ValidID(k.Public().String()) {
			t.Errorf("the ID of %s is %s", k.Public(), id)
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
			if got := fmt.Sprintf(verb, k); got != "private key of "+k.Public().ID() {
				t.Errorf("%s prints %s", verb, got)
			}
		}
	}
	// From the bytes of a key of cosign.
	k, err := ParsePublicKeyPEM([]byte(cosignKey))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(cosignKey))
	sum := sha256.Sum256(block.Bytes)
	if want := "ecdsa-p256:" + hex.EncodeToString(sum[:])[:32]; k.ID() != want {
		t.Errorf("the ID is %s, not %s", k.ID(), want)
	}
	if want := "ecdsa-p256:" + base64.StdEncoding.EncodeToString(block.Bytes[len(block.Bytes)-65:]); k.String() != want {
		t.Errorf("the text is %s, not %s", k, want)
	}
}

func TestWhatIsNoKeyIsRefused(t *testing.T) {
	ed, ec := generate(t, Ed25519).Public(), generate(t, ECDSAP256).Public()
	edText, ecText := strings.TrimPrefix(ed.String(), "ed25519:"), strings.TrimPrefix(ec.String(), "ecdsa-p256:")
	for name, c := range map[string]struct{ text, says string }{
		"no algorithm":                      {edText, "begins with neither"},
		"another algorithm":                 {"rsa:" + edText, "begins with neither"},
		"none":                              {"none:", "begins with neither"},
		"nothing":                           {"", "begins with neither"},
		"an ed25519 key as ECDSA":           {"ecdsa-p256:" + edText, "no point"},
		"an ECDSA key as ed25519":           {"ed25519:" + ecText, "has 65 bytes"},
		"an ID":                             {ed.ID(), "has 24 bytes"},
		"no padding":                        {strings.TrimRight(ed.String(), "="), "padded base64"},
		"a line break":                      {ed.String()[:20] + "\n" + ed.String()[20:], "line breaks"},
		"bits beyond the last byte":         {"ed25519:" + strings.Repeat("A", 42) + "B=", "padded base64"},
		"a megabyte":                        {"ed25519:" + strings.Repeat("A", 1<<20), "more than 65 bytes"},
		"a point beside the curve":          {"ecdsa-p256:" + base64.StdEncoding.EncodeToString(append([]byte{4}, make([]byte, 64)...)), "no point"},
		"a compressed point":                {"ecdsa-p256:" + base64.StdEncoding.EncodeToString(append([]byte{2}, ec.raw[1:33]...)), "no point"},
		"the point at infinity":             {"ecdsa-p256:AA==", "no point"},
		"upper case":                        {"ED25519:" + edText, "begins with neither"},
		"an ed25519 key of nothing but 0":   {"ed25519:" + strings.Repeat("A", 43) + "=", "anybody can sign"},
		"the neutral element, which is 1":   {small("01"), "anybody can sign"},
		"order 2: minus 1":                  {small("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"), "anybody can sign"},
		"order 4: 0, with a sign":           {small("0000000000000000000000000000000000000000000000000000000000000080"), "anybody can sign"},
		"order 8":                           {small("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "anybody can sign"},
		"order 8, another":                  {small("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "anybody can sign"},
		"order 8, with a sign":              {small("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa"), "anybody can sign"},
		"a number that is not reduced: p+3": {small("f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"), "anybody can sign"},
		"a number that is not reduced: p+1": {small("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"), "anybody can sign"},
	} {
		if k, err := ParsePublicKey(c.text); err == nil || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 300 {
			t.Errorf("%s: %v, %v", name, k, err)
		}
	}
	if _, err := ParsePublicKey(ed.String()); err != nil {
		t.Errorf("the counter-proof: %v", err)
	}

	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, data []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	public := func(k any) string { data, err := x509.MarshalPKIXPublicKey(k); return block("PUBLIC KEY", data, err) }
	for name, c := range map[string]struct{ pem, says string }{
		"P-384":         {public(p384.Public()), "not P-256"},
		"RSA":           {public(rsaKey.Public()), "neither"},
		"two keys":      {string(ed.PEM()) + string(ec.PEM()), "more in it"},
		"another block": {block("CERTIFICATE", []byte("x"), nil), "CERTIFICATE"},
		"no PEM":        {"hello", "there is no"},
		"a megabyte":    {strings.Repeat("x", 1<<20), "more than"},
		"a weak key":    {public(ed25519.PublicKey(make([]byte, 32))), "anybody can sign"},
	} {
		if k, err := ParsePublicKeyPEM([]byte(c.pem)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", name, k, err)
		}
	}
	private := func(k any) string {
		data, err := x509.MarshalPKCS8PrivateKey(k)
		return block("PRIVATE KEY", data, err)
	}
	for name, c := range map[string]struct{ pem, says string }{
		"of RSA":               {private(rsaKey), "neither"},
		"of P-384":             {private(p384), "not P-256"},
		"encrypted, of cosign": {block("ENCRYPTED SIGSTORE PRIVATE KEY", []byte("x"), nil), "it is encrypted"},
		"a public one":         {string(ed.PEM()), `not a "PRIVATE KEY"`},
		"rubbish":              {block("PRIVATE KEY", []byte("x"), nil), "not PKCS #8"},
	} {
		if k, err := ParsePrivateKey([]byte(c.pem)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("private key %s: %v, %v", name, k, err)
		}
	}
}

// small is a point by its encoding in hex, filled up with zeros.
func small(digits string) string {
	data, err := hex.DecodeString(digits + strings.Repeat("0", 64-len(digits)))
	if err != nil {
		panic(err)
	}
	return "ed25519:" + base64.StdEncoding.EncodeToString(data)
}

// By hand, after the example of the specification.
func TestTheEncodingIsThatOfDSSE(t *testing.T) {
	want := "DSSEv1 39 application/vnd.stockade.module.v1+json 11 hello world"
	if got := string(pae(PayloadType, []byte("hello world"))); got != want {
		t.Errorf("%q", got)
	}
}

func TestAStatementIsReturnedForTheKeysThatSigned(t *testing.T) {
	a, b, other := generate(t, Ed25519), generate(t, ECDSAP256), generate(t, Ed25519)
	s, err := Open(signed(t, a, b))
	if err != nil {
		t.Fatal(err)
	}
	got, by, err := s.Verify([]PublicKey{other.Public(), b.Public(), a.Public(), a.Public(), {}})
	if err != nil || !slices.Equal(by, []PublicKey{b.Public(), a.Public()}) {
		t.Errorf("signed by %v, %v", by, err)
	}
	if diff := cmp.Diff(statement(), got); diff != "" {
		t.Error(diff)
	}
	for name, keys := range map[string][]PublicKey{"another key": {other.Public()}, "no key": nil, "the zero key": {{}}} {
		if got, by, err := s.Verify(keys); !errors.Is(err, ErrNotSigned) || got != (Statement{}) || by != nil {
			t.Errorf("%s: %v, %v, %v", name, got, by, err)
		}
	}
	if got := s.ClaimedKeys(); !slices.Equal(got, []PublicKey{a.Public(), b.Public()}) {
		t.Errorf("claims %v", got)
	}
	file := statement()
	file.Repository, file.Expires, file.Version = "", time.Time{}, "1.0.0-rc.1+b.2"
	file.Issued = time.Date(2026, 3, 1, 14, 0, 0, 99, time.FixedZone("", 7200))
	envelope, err := Sign(file, a)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = Open(envelope); err != nil {
		t.Fatal(err)
	}
	file.Issued = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if got, _, err := s.Verify([]PublicKey{a.Public()}); err != nil || got != file {
		t.Errorf("of a file: %+v, %v", got, err)
	}
}

func TestWhatCannotBeStatedIsNotSigned(t *testing.T) {
	k := generate(t, Ed25519)
	for name, change := range map[string]func(*Statement){
		"no host":                     func(s *Statement) { s.Repository = "weather" },
		"a repository with a tag":     func(s *Statement) { s.Repository += ":1.0" },
		"a repository above":          func(s *Statement) { s.Repository = "example.org/../x" },
		"a repository in upper case":  func(s *Statement) { s.Repository = "example.org/X" },
		"a very long repository":      func(s *Statement) { s.Repository = "example.org/" + strings.Repeat("x", 600) },
		"a name with a slash":         func(s *Statement) { s.Name = "a/b" },
		"no name":                     func(s *Statement) { s.Name = "" },
		"a version with v":            func(s *Statement) { s.Version = "v1.2.0" },
		"a version of two numbers":    func(s *Statement) { s.Version = "1.2" },
		"a version with a zero ahead": func(s *Statement) { s.Version = "1.02.0" },
		"a very long version":         func(s *Statement) { s.Version = "1.0.0-" + strings.Repeat("x", 200) },
		"a digest without algorithm":  func(s *Statement) { s.Digest = strings.Repeat("a", 64) },
		"a digest in upper case":      func(s *Statement) { s.Digest = "sha256:" + strings.Repeat("A", 64) },
		"no fingerprint":              func(s *Statement) { s.Fingerprint.Needs = "" },
		"no time":                     func(s *Statement) { s.Issued = time.Time{} },
		"an end before the beginning": func(s *Statement) { s.Expires = s.Issued },
		"a year of five digits":       func(s *Statement) { s.Expires = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		s := statement()
		change(&s)
		if _, err := Sign(s, k); err == nil {
			t.Errorf("%s is signed", name)
		}
	}
	for name, keys := range map[string][]PrivateKey{"no key": nil, "the zero key": {{}}, "17 keys": slices.Repeat([]PrivateKey{k}, 17)} {
		if _, err := Sign(statement(), keys...); err == nil {
			t.Errorf("%s signs", name)
		}
	}
}

// resign returns an envelope around any payload, with good signatures, after a change.
func resign(t testing.TB, k PrivateKey, payload string, change func(map[string]any)) []byte {
	t.Helper()
	sig, err := k.sign(pae(PayloadType, []byte(payload)))
	if err != nil {
		t.Fatal(err)
	}
	e := map[string]any{
		"payloadType": PayloadType, "payload": base64.StdEncoding.EncodeToString([]byte(payload)),
		"signatures": []any{map[string]any{"keyid": k.Public().ID(), "sig": base64.StdEncoding.EncodeToString(sig), "public_key": k.Public().String()}},
	}
	if change != nil {
		change(e)
	}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestABadEnvelopeIsRefused(t *testing.T) {
	k, other := generate(t, ECDSAP256), generate(t, Ed25519)
	payload, err := statement().marshal()
	if err != nil {
		t.Fatal(err)
	}
	good := string(payload)
	first := func(e map[string]any) map[string]any { return e["signatures"].([]any)[0].(map[string]any) }
	verifies := func(envelope []byte) error {
		s, err := Open(envelope)
		if err == nil {
			_, _, err = s.Verify([]PublicKey{k.Public()})
		}
		return err
	}
	if err := verifies(resign(t, k, good, nil)); err != nil {
		t.Fatalf("the counter-proof: %v", err)
	}
	if err := verifies(resign(t, k, good, func(e map[string]any) { delete(first(e), "keyid"); delete(first(e), "public_key") })); err != nil {
		t.Errorf("keyid and public_key are needed: %v", err)
	}
	for name, c := range map[string]struct {
		change func(map[string]any)
		says   string
	}{
		"another payloadType":          {func(e map[string]any) { e["payloadType"] = "application/vnd.in-toto+json" }, "not a"},
		"no payloadType":               {func(e map[string]any) { delete(e, "payloadType") }, "not there"},
		"an unknown key":               {func(e map[string]any) { e["note"] = "x" }, `unknown key "note"`},
		"a key in upper case":          {func(e map[string]any) { e["Payload"] = e["payload"] }, `unknown key "Payload"`},
		"no signatures":                {func(e map[string]any) { e["signatures"] = []any{} }, "0 signatures"},
		"17 signatures":                {func(e map[string]any) { e["signatures"] = slices.Repeat(e["signatures"].([]any), 17) }, "17 signatures"},
		"a signature that is a number": {func(e map[string]any) { e["signatures"] = []any{1} }, "not an object"},
		"a huge signature":             {func(e map[string]any) { first(e)["sig"] = strings.Repeat("A", 4096) }, "more than"},
		"another keyid":                {func(e map[string]any) { first(e)["keyid"] = other.Public().ID() }, "its keyid is"},
		"a public_key of another":      {func(e map[string]any) { first(e)["public_key"] = other.Public().String() }, "its keyid is"},
		"an unknown key in signature":  {func(e map[string]any) { first(e)["alg"] = "none" }, `unknown key "alg"`},
		"base64 with line breaks":      {func(e map[string]any) { e["payload"] = e["payload"].(string)[:4] + "\n" + e["payload"].(string)[4:] }, "line breaks"},
		"base64 for URLs":              {func(e map[string]any) { e["payload"] = "-_-_" }, "base64"},
		"a payload that is no string":  {func(e map[string]any) { e["payload"] = 7 }, "another type"},
		"a signature cut short": {func(e map[string]any) {
			first(e)["sig"] = base64.StdEncoding.EncodeToString([]byte("0"))
		}, "did not sign this"},
		"a key that did not sign": {func(e map[string]any) {
			first(e)["keyid"], first(e)["public_key"] = other.Public().ID(), other.Public().String()
		}, "did not sign this"},
		"a signature of another, which names no key": {func(e map[string]any) {
			sig, _ := other.sign(pae(PayloadType, payload))
			e["signatures"] = []any{map[string]any{"sig": base64.StdEncoding.EncodeToString(sig)}}
		}, ErrNotSigned.Error()},
	} {
		if err := verifies(resign(t, k, good, c.change)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	replaced := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %s in %s", old, good)
		}
		return strings.Replace(good, old, new, 1)
	}
	for name, c := range map[string]struct{ payload, says string }{
		"a key twice":             {replaced(`"name":`, `"name":"evil","name":`), "twice"},
		"an unknown key":          {replaced(`"name":`, `"only":"on tuesdays","name":`), `unknown key "only"`},
		"an unknown print":        {replaced(`"needs":`, `"more":"","needs":`), `unknown key "more"`},
		"a key in another case":   {replaced(`"name":`, `"Name":`), `"name" is not there`},
		"another type":            {replaced(`module/v1`, `module/v2`), "does not know"},
		"no type":                 {replaced(`"type":`, `"typ":`), `"type" is not there`},
		"text behind":             {good + "{}", "not one complete JSON value"},
		"no JSON":                 {"hello", "not valid JSON"},
		"a list":                  {"[]", "not a JSON object"},
		"null":                    {"null", "not a JSON object"},
		"a null name":             {replaced(`"weather"`, `null`), "another type"},
		"a time with a zone":      {replaced("12:00:00Z", "14:00:00+02:00"), "not a time"},
		"an end at the zero time": {replaced("2027-03-01T12:00:00Z", "0001-01-01T00:00:00Z"), "not a time"},
		"a time with a comma":     {replaced("12:00:00Z", "12:00:00,5Z"), "not a time"},
		"bad UTF-8":               {replaced("weather", "\xff"), "UTF-8"},
		"deep nesting":            {strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), "nests deeper than 64"},
		"very deep nesting":       {strings.Repeat(`[`, 40000), "nests deeper than 64"},
		"40,000 bytes too many":   {good + strings.Repeat(" ", 100_000), "more than"},
	} {
		if err := verifies(resign(t, k, c.payload, nil)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("payload: %s: %v", name, err)
		}
	}
	// A signature over the bare payload, as one over a plain file would be.
	sig, err := k.sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifies(resign(t, k, good, func(e map[string]any) {
		e["signatures"] = []any{map[string]any{"sig": base64.StdEncoding.EncodeToString(sig)}}
	})); !errors.Is(err, ErrNotSigned) {
		t.Errorf("a signature over the bare payload: %v", err)
	}
}

func TestAKeyCountsOnceHoweverOftenItSigned(t *testing.T) {
	k := generate(t, ECDSAP256) // whose signatures differ
	s, err := Open(signed(t, k, k, k))
	if err != nil {
		t.Fatal(err)
	}
	_, by, err := s.Verify([]PublicKey{k.Public(), k.Public()})
	if err != nil || len(by) != 1 || len(s.ClaimedKeys()) != 1 {
		t.Errorf("signed by %v, claims %v, %v", by, s.ClaimedKeys(), err)
	}
}

func TestEveryFlippedBitIsRefusedOrMeansNothing(t *testing.T) {
	a, b := generate(t, Ed25519), generate(t, ECDSAP256)
	keys := []PublicKey{a.Public(), b.Public()}
	ours := signed(t, a, b)
	var e map[string]any // as others make them, who name no keys
	if err := json.Unmarshal(ours, &e); err != nil {
		t.Fatal(err)
	}
	for _, s := range e["signatures"].([]any) {
		delete(s.(map[string]any), "public_key")
		delete(s.(map[string]any), "keyid")
	}
	theirs, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		envelope []byte
		fewer    bool // whether a flip can take one of two signatures away
	}{"ours": {ours, false}, "without the names of keys": {theirs, true}} {
		fewer := 0
		for i := range c.envelope {
			for bit := range 8 {
				flipped := bytes.Clone(c.envelope)
				flipped[i] ^= 1 << bit
				s, err := Open(flipped)
				if err != nil {
					continue
				}
				if !subset(s.ClaimedKeys(), keys) {
					t.Errorf("%s: bit %d of byte %d: claimed by %v", name, bit, i, s.ClaimedKeys())
				}
				got, by, err := s.Verify(keys)
				if err != nil {
					continue
				}
				if got != statement() || !subset(by, keys) {
					t.Errorf("%s: bit %d of byte %d: %+v by %v", name, bit, i, got, by)
				}
				if len(by) < len(keys) {
					fewer++
				}
			}
		}
		if (fewer > 64) != c.fewer || (fewer > 0) != c.fewer {
			t.Errorf("%s: %d flips took one of two signatures away", name, fewer)
		}
	}
}

func subset(some, all []PublicKey) bool {
	return !slices.ContainsFunc(some, func(k PublicKey) bool { return !slices.Contains(all, k) })
}

func FuzzOpen(f *testing.F) {
	k := generate(f, Ed25519)
	f.Add(signed(f, k))
	f.Add([]byte(`{"payloadType":"` + PayloadType + `","payload":"e30=","signatures":[{"sig":""}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Open(data)
		if err != nil {
			return
		}
		if err := s.statement.check(); err != nil {
			t.Errorf("a statement that is none: %v", err)
		}
		again, err := s.statement.marshal()
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", s.statement, err)
		}
		if got, err := parseStatement(again); err != nil || got != s.statement {
			t.Errorf("%+v is read as %+v, %v", s.statement, got, err)
		}
		if got, by, err := s.Verify([]PublicKey{k.Public()}); err == nil && (got != statement() || len(by) != 1) {
			t.Errorf("%+v by %v", got, by)
		}
	})
}
