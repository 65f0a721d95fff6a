package trust

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/registry/sign"
)

// world is a correctly signed module with the rules of trust. Each case changes one thing
// in it.
type world struct {
	t *testing.T

	first, second, stranger sign.PrivateKey // of example.org (ECDSA, ed25519), and of nobody
	boss                    sign.PrivateKey // of the administrator's publisher
	admin, user             *File
	subject                 Subject
	statement               sign.Statement // which is signed by signers, unless envelopes are set
	signers                 []sign.PrivateKey
	evidence                sign.Evidence // beside that
	now                     time.Time
	seen                    Previous
}

func hash(c string) string { return strings.Repeat(c, 64) }

func key(t *testing.T, a sign.Algorithm) sign.PrivateKey {
	t.Helper()
	k, err := sign.Generate(a)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newWorld(t *testing.T) *world {
	w := &world{
		t: t, first: key(t, sign.ECDSAP256), second: key(t, sign.Ed25519), stranger: key(t, sign.Ed25519), boss: key(t, sign.Ed25519),
		now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
		subject: Subject{
			Repository: "registry.example.org/tools/weather", Name: "weather", Version: "1.2.0",
			Digest: "sha256:" + hash("a"), ManifestDigest: "sha256:" + hash("e"),
			Fingerprint: sign.Fingerprint{Description: hash("b"), Schema: hash("c"), Needs: hash("d")},
		},
	}
	w.statement = sign.Statement{
		Repository: w.subject.Repository, Name: w.subject.Name, Version: w.subject.Version, Digest: w.subject.Digest, Fingerprint: w.subject.Fingerprint,
		Issued: w.now.AddDate(0, -1, 0), Expires: w.now.AddDate(1, 0, 0),
	}
	w.signers = []sign.PrivateKey{w.first}
	w.user = &File{Name: "user", Publishers: []Publisher{{
		Name: "example.org", Namespaces: []string{"registry.example.org/tools"},
		Keys: []sign.PublicKey{w.first.Public(), w.second.Public()}, Threshold: 1, Expires: w.now.AddDate(0, 1, 0),
	}}}
	w.admin = &File{Name: "admin", Publishers: []Publisher{{
		Name: "corp.example", Namespaces: []string{"registry.corp.example"}, Keys: []sign.PublicKey{w.boss.Public()}, Threshold: 1,
	}}}
	w.seen = Previous{Signer: "example.org", Version: "1.1.0", Issued: w.statement.Issued.AddDate(0, -1, 0), Digest: "sha256:" + hash("9")}
	return w
}

func (w *world) publisher() *Publisher { return &w.user.Publishers[0] }

func (w *world) envelope(st sign.Statement, keys ...sign.PrivateKey) []byte {
	w.t.Helper()
	e, err := sign.Sign(st, keys...)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// changed is the envelope with some of its JSON changed.
func (w *world) changed(envelope []byte, change func(e, first map[string]any)) []byte {
	w.t.Helper()
	var e map[string]any
	if err := json.Unmarshal(envelope, &e); err != nil {
		w.t.Fatal(err)
	}
	change(e, e["signatures"].([]any)[0].(map[string]any))
	data, err := json.Marshal(e)
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}

func (w *world) judge() (Verdict, error) {
	w.t.Helper()
	e := w.evidence
	if len(w.signers) > 0 {
		e.Envelopes = append([][]byte{w.envelope(w.statement, w.signers...)}, e.Envelopes...)
	}
	return Combine(w.admin, w.user).Judge(w.subject, e, w.now, w.seen)
}

// only replaces all evidence.
func (w *world) only(envelopes ...[]byte) {
	w.signers, w.evidence = nil, sign.Evidence{Envelopes: envelopes}
}

// sign signs a message with the first key.
func (w *world) sign(message string) string {
	w.t.Helper()
	text, err := w.first.PEM()
	if err != nil {
		w.t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		w.t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(message))
	sig, err := k.(*ecdsa.PrivateKey).Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		w.t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(sig)
}

// cosigned replaces all evidence by one signature as cosign makes it, with the
// first key.
func (w *world) cosigned(payload string) {
	w.t.Helper()
	w.signers, w.evidence = nil, sign.Evidence{Cosign: []sign.Cosign{{Payload: []byte(payload), Signature: w.sign(payload)}}}
}

// bundled replaces all evidence by a bundle as cosign 3 makes it, with the first key.
func (w *world) bundled(digest, predicate string) {
	w.t.Helper()
	const kind = "application/vnd.in-toto+json"
	payload := fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":%q,"predicate":{}}`, strings.TrimPrefix(digest, "sha256:"), predicate)
	w.signers, w.evidence = nil, sign.Evidence{Bundles: [][]byte{fmt.Appendf(nil, `{"mediaType":%q,"verificationMaterial":{"publicKey":{}},"dsseEnvelope":{"payload":%q,"payloadType":%q,"signatures":[{"sig":%q}]}}`,
		sign.BundleType, base64.StdEncoding.EncodeToString([]byte(payload)), kind, w.sign(fmt.Sprintf("DSSEv1 %d %s %d %s", len(kind), kind, len(payload), payload)))}}
}

func (w *world) bundle() { w.bundled(w.subject.ManifestDigest, sign.CosignPredicate) }

// payload is what cosign signs.
func payload(repository, digest string) string {
	return fmt.Sprintf(`{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, repository, digest)
}

func (w *world) cosign() { w.cosigned(payload(w.subject.Repository, w.subject.ManifestDigest)) }

// file makes the module one that is published nowhere.
func (w *world) file(namespace string) {
	w.subject.Repository, w.subject.ManifestDigest, w.statement.Repository = "", "", ""
	w.publisher().Namespaces = []string{namespace}
}

// want holds the expected parts of a verdict.
type want struct {
	signer, file, namespace string
	keys, unknown           int
	unread                  string
}

func org(namespace string) want { return want{"example.org", "user", namespace, 1, 0, ""} }

func TestAModuleThatIsSignedAsItShouldBeHasASigner(t *testing.T) {
	const tools = "registry.example.org/tools"
	for name, c := range map[string]struct {
		change func(*world)
		want   want
	}{
		"as it is":                   {func(w *world) {}, org(tools)},
		"added for the first time":   {func(w *world) { w.seen = Previous{} }, org(tools)},
		"the same again":             {func(w *world) { w.seen = Previous{"example.org", "1.2.0", w.statement.Issued, w.subject.Digest} }, org(tools)},
		"signed again":               {func(w *world) { w.seen.Version, w.seen.Digest = "1.2.0", w.subject.Digest }, org(tools)},
		"after a release candidate":  {func(w *world) { w.seen.Version = "1.2.0-rc.1" }, org(tools)},
		"with another signer before": {func(w *world) { w.seen.Signer, w.seen.Version = "other.example", "9.0.0" }, org(tools)},
		"by two keys of two that are needed": {func(w *world) {
			w.publisher().Threshold, w.signers = 2, []sign.PrivateKey{w.first, w.second}
		}, want{"example.org", "user", tools, 2, 0, ""}},
		"by two keys in two envelopes": {func(w *world) {
			w.publisher().Threshold = 2
			w.evidence.Envelopes = [][]byte{w.envelope(w.statement, w.second)}
		}, want{"example.org", "user", tools, 2, 0, ""}},
		"by a key and one that nobody knows": {func(w *world) { w.signers = append(w.signers, w.stranger) }, want{"example.org", "user", tools, 1, 1, ""}},
		"by a key of which one was stolen": {func(w *world) {
			w.signers = append(w.signers, w.second)
			w.user.Revoked = []Revocation{{Key: w.second.Public().ID()}}
		}, org(tools)},
		"beside a statement that expired": {func(w *world) {
			old := w.statement
			old.Expires = w.now.AddDate(0, 0, -1)
			w.evidence.Envelopes = [][]byte{w.envelope(old, w.first)}
		}, org(tools)},
		"in the namespace itself": {func(w *world) { w.publisher().Namespaces = []string{w.subject.Repository} }, org("registry.example.org/tools/weather")},
		"in the longest of three": {func(w *world) {
			w.publisher().Namespaces = []string{"*", "registry.example.org/tools", "registry.example.org"}
		}, org(tools)},
		"anywhere":                         {func(w *world) { w.publisher().Namespaces = []string{"*"} }, org("*")},
		"a file that is published":         {func(w *world) { w.subject.Repository, w.subject.ManifestDigest = "", "" }, org(tools)},
		"a file that is not":               {func(w *world) { w.file("file:weather") }, org("file:weather")},
		"any file":                         {func(w *world) { w.file("file:*") }, org("file:*")},
		"a clock that is behind":           {func(w *world) { w.now = w.statement.Issued.Add(-4 * time.Minute) }, org(tools)},
		"with cosign":                      {func(w *world) { w.cosign() }, org(tools)},
		"with both":                        {func(w *world) { w.cosign(); w.signers = []sign.PrivateKey{w.first} }, org(tools)},
		"with cosign, in a layout":         {func(w *world) { w.cosign(); w.subject.Repository = "" }, org(tools)},
		"with cosign, and never a version": {func(w *world) { w.cosign(); w.seen.Version, w.subject.Version = "", "" }, org(tools)},
		"with cosign 3":                    {func(w *world) { w.bundle() }, org(tools)},
		"with cosign 3, in a layout":       {func(w *world) { w.bundle(); w.subject.Repository, w.publisher().Namespaces = "", []string{"*"} }, org("*")},
		"with all three": {func(w *world) {
			w.bundle()
			bundles := w.evidence.Bundles
			w.cosign()
			w.evidence.Bundles, w.signers = bundles, []sign.PrivateKey{w.first}
		}, org(tools)},
		"with cosign 3, beside one that is not read": {func(w *world) { w.bundle(); w.evidence.Unread = []string{"x"} }, org(tools)},
		"with cosign, by a stranger": {func(w *world) {
			w.cosign()
			w.publisher().Keys, w.seen = w.publisher().Keys[1:], Previous{}
		}, want{unread: "cosign"}},
		"with cosign 3, by a stranger": {func(w *world) {
			w.bundle()
			w.publisher().Keys, w.seen = w.publisher().Keys[1:], Previous{}
		}, want{unread: "cosign"}},
		"with cosign 3, and an attestation alone": {func(w *world) { w.bundled(w.subject.ManifestDigest, "https://spdx.dev/Document"); w.seen = Previous{} }, want{unread: `a sigstore attestation of "https://spdx.dev/Document"`}},
		"in a form that is not read":              {func(w *world) { w.only(); w.evidence.Unread, w.seen = []string{"notary"}, Previous{} }, want{unread: "notary"}},
		"without a signature":                     {func(w *world) { w.only(); w.seen = Previous{} }, want{}},
		"by a stranger":                           {func(w *world) { w.signers, w.seen = []sign.PrivateKey{w.stranger}, Previous{} }, want{unknown: 1}},
		"by one, twice":                           {func(w *world) { w.signers, w.seen = []sign.PrivateKey{w.stranger, w.stranger}, Previous{} }, want{unknown: 1}},
		"by nobody whom rules know":               {func(w *world) { w.admin, w.user, w.seen = nil, nil, Previous{} }, want{unknown: 1}},
		"by two, of whom one was the signer before": {func(w *world) {
			w.admin.Publishers[0].Namespaces = []string{"*"}
			w.signers = append(w.signers, w.boss)
		}, org(tools)},
		"by two": {func(w *world) {
			w.admin.Publishers[0].Namespaces = []string{"*"}
			w.signers, w.seen = append(w.signers, w.boss), Previous{}
		}, want{"corp.example", "admin", "*", 1, 0, ""}},
		"after another's signature that does not hold": {func(w *world) {
			w.signers = append(w.signers, w.boss) // outside its namespace
		}, org(tools)},
	} {
		w := newWorld(t)
		c.change(w)
		v, err := w.judge()
		got := want{v.Signer, v.File, v.Namespace, len(v.Keys), len(v.Unknown), strings.Join(v.Unread, ",")}
		if v.UnknownCosign {
			got.unread = "cosign"
		}
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if v.Signer != "" && len(w.signers) > 0 && !v.Issued.Equal(w.statement.Issued) {
			t.Errorf("%s: issued %s", name, v.Issued)
		}
		if len(v.Unknown) > 0 && w.user != nil && v.Unknown[0] != w.stranger.Public() {
			t.Errorf("%s: unknown %v", name, v.Unknown)
		}
	}
}

func TestEverythingElseIsRefused(t *testing.T) {
	as := func(change func(*sign.Statement)) func(*world) { return func(w *world) { change(&w.statement) } }
	for name, c := range map[string]struct {
		setup  func(*world) // of the counter-proof, which is taken
		change func(*world)
		reason Reason
		says   string
	}{
		"stripped":                         {nil, func(w *world) { w.only() }, Stripped, "remove the one that is there"},
		"signed by a stranger instead":     {nil, func(w *world) { w.signers = []sign.PrivateKey{w.stranger} }, Stripped, ""},
		"swapped bytes":                    {nil, func(w *world) { w.subject.Digest = "sha256:" + hash("0") }, OtherBytes, "sha256:aaaa"},
		"moved from another repository":    {nil, as(func(s *sign.Statement) { s.Repository = "registry.example.org/tools/time" }), OtherRepository, `"registry.example.org/tools/time"`},
		"found in another repository":      {nil, func(w *world) { w.subject.Repository = "evil.example/tools/weather" }, OtherRepository, ""},
		"a statement for a file":           {nil, as(func(s *sign.Statement) { s.Repository = "" }), OtherRepository, "for a file"},
		"another name":                     {nil, func(w *world) { w.subject.Name = "time" }, OtherName, `"time"`},
		"a statement for an older version": {nil, as(func(s *sign.Statement) { s.Version = "1.1.0" }), OtherVersion, `"1.1.0"`},
		"a module without version":         {nil, func(w *world) { w.subject.Version = "" }, OtherVersion, ""},
		"other needs":                      {nil, func(w *world) { w.subject.Fingerprint.Needs = hash("0") }, OtherFingerprint, "other needs of"},
		"other descriptions and schemas":   {nil, func(w *world) { w.subject.Fingerprint = sign.Fingerprint{Needs: hash("d")} }, OtherFingerprint, "descriptions and schemas"},
		"an envelope of another module":    {nil, func(w *world) { w.only(w.other()) }, OtherName, ""},
		"the same, beside a stranger's":    {nil, func(w *world) { w.only(w.envelope(w.statement, w.stranger), w.other()) }, OtherName, ""},
		"expired":                          {nil, func(w *world) { w.now = w.statement.Expires; w.publisher().Expires = time.Time{} }, Expired, "signed again"},
		"issued tomorrow":                  {nil, as(func(s *sign.Statement) { s.Issued = s.Issued.AddDate(0, 1, 1) }), IssuedInFuture, "clock"},
		"a clock that was set back":        {nil, func(w *world) { w.now = w.statement.Issued.AddDate(0, 0, -1) }, IssuedInFuture, "clock"},
		"an expired publisher":             {nil, func(w *world) { w.publisher().Expires = w.now }, PublisherExpired, "user trusts it until"},
		"a stolen key":                     {nil, func(w *world) { w.user.Revoked = []Revocation{{Key: w.first.Public().ID(), Why: "stolen"}} }, RevokedKey, "by user: stolen"},
		"a key that the administrator revoked": {nil, func(w *world) {
			w.admin.Revoked = []Revocation{{Key: w.first.Public().ID()}}
		}, RevokedKey, "by admin"},
		"a stolen key with cosign": {(*world).cosign, func(w *world) {
			w.user.Revoked = []Revocation{{Key: w.first.Public().ID()}}
		}, RevokedKey, ""},
		"a stolen key of nobody": {nil, func(w *world) {
			w.signers = []sign.PrivateKey{w.stranger}
			w.user.Revoked = []Revocation{{Key: w.stranger.Public().ID()}}
		}, RevokedKey, ""},
		"a revoked module": {nil, func(w *world) { w.user.Revoked = []Revocation{{Digest: w.subject.Digest, Why: "mines coins"}} }, RevokedDigest, "mines coins"},
		"a revoked manifest": {nil, func(w *world) {
			w.admin.Revoked = []Revocation{{Digest: w.subject.ManifestDigest}}
		}, RevokedDigest, "by admin"},
		"a revoked module without signature": {nil, func(w *world) {
			w.only()
			w.user.Revoked = []Revocation{{Digest: w.subject.Digest}}
		}, RevokedDigest, ""},
		"outside the namespace": {nil, func(w *world) { w.publisher().Namespaces = []string{"registry.example.org/other"} }, OutsideNamespace, "does not let it sign registry.example.org/tools/weather"},
		"a namespace that begins alike": {nil, func(w *world) {
			w.subject.Repository, w.statement.Repository = "registry.example.org/toolsmith", "registry.example.org/toolsmith"
		}, OutsideNamespace, ""},
		"a host that begins alike": {nil, func(w *world) {
			w.subject.Repository, w.statement.Repository = "registry.example.org.evil.example/tools/weather", "registry.example.org.evil.example/tools/weather"
			w.publisher().Namespaces = []string{"registry.example.org"}
		}, OutsideNamespace, ""},
		"a file where repositories are meant": {nil, func(w *world) { w.file("registry.example.org") }, OutsideNamespace, "the file weather"},
		"another file":                        {func(w *world) { w.file("file:weather") }, func(w *world) { w.file("file:time") }, OutsideNamespace, ""},
		"a repository where files are meant":  {nil, func(w *world) { w.publisher().Namespaces = []string{"file:*"} }, OutsideNamespace, ""},
		"a namespace of the administrator": {nil, func(w *world) {
			w.admin.Publishers[0].Namespaces = []string{"registry.example.org"}
		}, OutsideNamespace, "admin keeps registry.example.org for corp.example"},
		"the name of the administrator's publisher": {nil, func(w *world) { w.admin.Publishers[0].Name = "example.org" }, Stripped, ""},
		"a key of the administrator's publisher": {nil, func(w *world) {
			w.admin.Publishers[0].Keys = []sign.PublicKey{w.first.Public()}
		}, OutsideNamespace, "admin does not let it"},
		"one key of two that are needed": {func(w *world) { w.publisher().Threshold, w.signers = 2, []sign.PrivateKey{w.first, w.second} },
			func(w *world) { w.signers = []sign.PrivateKey{w.first} }, TooFewKeys, "2 of its keys have to sign, and 1 did"},
		"one key twice where two are needed": {func(w *world) { w.publisher().Threshold, w.signers = 2, []sign.PrivateKey{w.first, w.second} },
			func(w *world) { w.signers = []sign.PrivateKey{w.first, w.first} }, TooFewKeys, "and 1 did"},
		"one key in two formats where two are needed": {func(w *world) { w.publisher().Threshold, w.signers = 2, []sign.PrivateKey{w.first, w.second} },
			func(w *world) { w.cosign(); w.signers = []sign.PrivateKey{w.first} }, TooFewKeys, "and 1 did"},
		"a key and a stranger's where two are needed": {func(w *world) { w.publisher().Threshold, w.signers = 2, []sign.PrivateKey{w.first, w.second} },
			func(w *world) { w.signers = []sign.PrivateKey{w.first, w.stranger} }, TooFewKeys, ""},
		"a key and a revoked one where two are needed": {func(w *world) { w.publisher().Threshold, w.signers = 2, []sign.PrivateKey{w.first, w.second} },
			func(w *world) { w.user.Revoked = []Revocation{{Key: w.second.Public().ID()}} }, RevokedKey, ""},
		"an older version": {nil, func(w *world) { w.seen.Version = "1.10.0" }, RolledBack, "older than 1.10.0"},
		"a release candidate after": {nil, func(w *world) {
			w.seen.Version, w.subject.Version, w.statement.Version = "1.2.0", "1.2.0-rc.1", "1.2.0-rc.1"
		}, RolledBack, ""},
		"an older one, with cosign":  {(*world).cosign, func(w *world) { w.seen.Version = "2.0.0" }, RolledBack, ""},
		"no version after one":       {(*world).cosign, func(w *world) { w.subject.Version = "" }, RolledBack, ""},
		"a version twice":            {nil, func(w *world) { w.seen.Version = "1.2.0" }, SameVersion, "with other bytes"},
		"a version twice, as builds": {nil, func(w *world) { w.seen.Version = "1.2.0+1" }, SameVersion, ""},
		"an older statement":         {nil, func(w *world) { w.seen.Issued = w.statement.Issued.Add(time.Second) }, IssuedEarlier, "before that of what is there"},
		"another payloadType": {nil, func(w *world) {
			w.only(w.changed(w.envelope(w.statement, w.first), func(e, _ map[string]any) { e["payloadType"] = "application/vnd.in-toto+json" }))
		}, Malformed, "not a"},
		"a keyid that lies": {nil, func(w *world) {
			w.only(w.changed(w.envelope(w.statement, w.stranger), func(_, s map[string]any) { s["keyid"] = w.first.Public().ID() }))
		}, Malformed, "its keyid is"},
		"a keyid that lies, without a key": {nil, func(w *world) {
			w.only(w.changed(w.envelope(w.statement, w.stranger), func(_, s map[string]any) { s["keyid"] = w.first.Public().ID(); delete(s, "public_key") }))
		}, Stripped, ""},
		"a key that did not sign": {nil, func(w *world) {
			w.only(w.changed(w.envelope(w.statement, w.stranger), func(_, s map[string]any) {
				s["keyid"], s["public_key"] = w.first.Public().ID(), w.first.Public().String()
			}))
		}, Malformed, "did not sign this"},
		"another payload under the signature": {nil, func(w *world) {
			w.only(w.changed(w.envelope(w.statement, w.first), func(e, _ map[string]any) {
				var other map[string]any
				if err := json.Unmarshal(w.envelope(w.statement, w.stranger), &other); err != nil {
					t.Fatal(err)
				}
				text, _ := base64.StdEncoding.DecodeString(other["payload"].(string))
				e["payload"] = base64.StdEncoding.EncodeToString(bytes.Replace(text, []byte(`"weather"`), []byte(`"whether"`), 1))
			}))
		}, Malformed, "did not sign this"},
		"an ed25519 signature as ECDSA": {nil, func(w *world) {
			w.only(w.changed(w.envelope(w.statement, w.second), func(_, s map[string]any) {
				s["keyid"], s["public_key"] = w.first.Public().ID(), w.first.Public().String()
			}))
		}, Malformed, "did not sign this"},
		"an ed25519 key under the name of ECDSA": {nil, func(w *world) {
			w.only(w.changed(w.envelope(w.statement, w.second), func(_, s map[string]any) {
				s["public_key"] = "ecdsa-p256" + strings.TrimPrefix(s["public_key"].(string), "ed25519")
			}))
		}, Malformed, "no point"},
		"rubbish":       {nil, func(w *world) { w.only([]byte("rubbish")) }, Malformed, "not valid JSON"},
		"a huge one":    {nil, func(w *world) { w.only(bytes.Repeat([]byte(" "), 1<<20)) }, Malformed, "more than"},
		"33 signatures": {nil, func(w *world) { w.only(slices.Repeat([][]byte{w.envelope(w.statement, w.first)}, 33)...) }, Malformed, "at most 32"},
		"cosign, of another repository": {(*world).cosign, func(w *world) {
			w.cosigned(payload("registry.example.org/tools/time", w.subject.ManifestDigest))
		}, OtherRepository, ""},
		"cosign, of another manifest": {(*world).cosign, func(w *world) {
			w.cosigned(payload(w.subject.Repository, "sha256:"+hash("0")))
		}, OtherBytes, "sha256:0000"},
		"cosign 3, of another manifest": {(*world).bundle, func(w *world) { w.bundled("sha256:"+hash("0"), sign.CosignPredicate) }, OtherBytes, "sha256:0000"},
		"cosign 3, and no manifest":     {(*world).bundle, func(w *world) { w.subject.ManifestDigest = "" }, OtherBytes, "without one"},
		"cosign 3, found elsewhere":     {(*world).bundle, func(w *world) { w.subject.Repository = "evil.example/tools/weather" }, OutsideNamespace, "evil.example/tools/weather"},
		"cosign 3, in a layout":         {(*world).bundle, func(w *world) { w.subject.Repository = "" }, OutsideNamespace, "the file weather"},
		"cosign 3, flipped":             {(*world).bundle, func(w *world) { w.evidence.Bundles[0][200] ^= 1 }, Stripped, ""},
		"cosign 3, cut off":             {(*world).bundle, func(w *world) { w.evidence.Bundles[0] = w.evidence.Bundles[0][:300] }, Malformed, "not valid JSON"},
		"cosign 3, of something else":   {(*world).bundle, func(w *world) { w.bundled(w.subject.ManifestDigest, "https://spdx.dev/Document") }, Stripped, ""},
		"cosign 3, 33 times":            {(*world).bundle, func(w *world) { w.evidence.Bundles = slices.Repeat(w.evidence.Bundles, 33) }, Malformed, "at most 32"},
		"in a form that is not read":    {nil, func(w *world) { w.only(); w.evidence.Unread = []string{"notary"} }, Stripped, ""},
		"a stolen key with cosign 3": {(*world).bundle, func(w *world) {
			w.user.Revoked = []Revocation{{Key: w.first.Public().ID()}}
		}, RevokedKey, ""},
		"cosign, of the module":    {(*world).cosign, func(w *world) { w.cosigned(payload(w.subject.Repository, w.subject.Digest)) }, OtherBytes, ""},
		"cosign, and no manifest":  {(*world).cosign, func(w *world) { w.subject.ManifestDigest = "" }, OtherBytes, "without one"},
		"cosign, and no reference": {(*world).cosign, func(w *world) { w.cosigned(payload("", w.subject.ManifestDigest)) }, Malformed, "docker-reference"},
		"cosign, flipped":          {(*world).cosign, func(w *world) { w.evidence.Cosign[0].Payload[60] ^= 1 }, Stripped, ""},
		"cosign, and outside":      {(*world).cosign, func(w *world) { w.publisher().Namespaces = []string{"other.example"} }, OutsideNamespace, ""},
		"cosign, and expired":      {(*world).cosign, func(w *world) { w.publisher().Expires = w.now.AddDate(0, 0, -1) }, PublisherExpired, ""},
	} {
		w := newWorld(t)
		if c.setup != nil {
			c.setup(w)
		}
		if v, err := w.judge(); err != nil || v.Signer != "example.org" {
			t.Errorf("%s: the counter-proof: %+v, %v", name, v, err)
			continue
		}
		c.change(w)
		v, err := w.judge()
		refused, ok := errors.AsType[*Error](err)
		if !ok || refused.Reason != c.reason || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 500 || v.Signer != "" || v.Unknown != nil {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

// other is an envelope of example.org for another module.
func (w *world) other() []byte {
	st := w.statement
	st.Name = "time"
	return w.envelope(st, w.first)
}

func TestADigestInAnotherFormIsNotTaken(t *testing.T) {
	for name, change := range map[string]func(*Subject){
		"hex alone":         func(s *Subject) { s.Digest = hash("a") },
		"none":              func(s *Subject) { s.Digest = "" },
		"a manifest in hex": func(s *Subject) { s.ManifestDigest = hash("e") },
	} {
		w := newWorld(t)
		w.only()
		w.seen = Previous{}
		if _, err := w.judge(); err != nil {
			t.Fatalf("the counter-proof: %v", err)
		}
		change(&w.subject)
		if _, err := w.judge(); err == nil || !strings.Contains(err.Error(), "sha256:") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryFlippedBitOfASignatureIsRefused(t *testing.T) {
	w := newWorld(t)
	w.seen = Previous{} // so that one that is gone would be no error
	good := w.envelope(w.statement, w.first, w.second)
	w.only(good)
	if v, err := w.judge(); err != nil || len(v.Keys) != 2 {
		t.Fatalf("the counter-proof: %+v, %v", v, err)
	}
	for i := range good {
		for bit := range 8 {
			flipped := bytes.Clone(good)
			flipped[i] ^= 1 << bit
			w.only(flipped)
			if v, err := w.judge(); err == nil {
				t.Errorf("bit %d of byte %d, %q for %q: %+v", bit, i, flipped[i], good[i], v)
			}
		}
	}
}
