package trust

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/stockade-dev/stockade/host/registry/sign"
)

const (
	// maxEvidence limits the number of signatures of a module, in all formats. A module with
	// more is refused.
	maxEvidence = 32
	// maxSkew limits how far the clock of a signer may be ahead of ours: a later time of
	// signing is an error.
	maxSkew = 5 * time.Minute
)

// Rules are the combined rules of all trust files. The zero Rules have no publishers.
type Rules struct {
	publishers []publisher
	keys       []sign.PublicKey
	owner      map[sign.PublicKey]int // index of the publisher of each key
	revoked    map[string]revocation  // revocations by the ID of a key, or by a digest
}

type publisher struct {
	Publisher
	file      string
	fileIndex int // index of the file among all; the administrator's is 0
}

type revocation struct {
	why, file string
}

func (r revocation) String() string {
	if r.why == "" {
		return "by " + r.file
	}
	return fmt.Sprintf("by %s: %s", r.file, r.why)
}

// Combine combines trust files, the administrator's first; a nil file counts as empty.
func Combine(files ...*File) *Rules {
	r := &Rules{owner: map[sign.PublicKey]int{}, revoked: map[string]revocation{}}
	for place, f := range files {
		if f == nil {
			continue
		}
		for _, v := range f.Revoked {
			id := v.Key + v.Digest // one of the two is empty
			if _, before := r.revoked[id]; !before {
				r.revoked[id] = revocation{v.Why, f.Name}
			}
		}
		for _, p := range f.Publishers {
			if slices.ContainsFunc(r.publishers, func(before publisher) bool { return before.Name == p.Name }) {
				continue
			}
			r.publishers = append(r.publishers, publisher{p, f.Name, place})
			for _, k := range p.Keys {
				if _, taken := r.owner[k]; !taken {
					r.owner[k] = len(r.publishers) - 1
					r.keys = append(r.keys, k)
				}
			}
		}
	}
	return r
}

// Revokes reports whether one of these key IDs and digests is revoked. It is cheap, and does
// not verify signatures: call [Rules.Judge] to learn whether a module still has a signer.
func (r *Rules) Revokes(ids ...string) bool {
	return slices.ContainsFunc(ids, func(s string) bool { _, yes := r.revoked[s]; return yes })
}

// KnowsKey reports whether one of these IDs is that of a publisher's key.
func (r *Rules) KnowsKey(ids ...string) bool {
	return slices.ContainsFunc(r.keys, func(k sign.PublicKey) bool { return slices.Contains(ids, k.ID()) })
}

// Owners returns the names of the publishers of the keys with these IDs, each once.
func (r *Rules) Owners(ids ...string) (names []string) {
	for _, k := range r.keys {
		if name := r.publishers[r.owner[k]].Name; slices.Contains(ids, k.ID()) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Names returns the names of all publishers.
func (r *Rules) Names() (names []string) {
	for _, p := range r.publishers {
		names = append(names, p.Name)
	}
	return names
}

// Subject is the module whose signatures are judged. The caller found its facts itself:
// it hashed the bytes, and followed the OCI manifest, if there is one, to the module.
type Subject struct {
	// Repository is HOST/REPOSITORY, the place where the module was found. Empty: it was found
	// in a file; then a statement may name any repository in which its signer may publish.
	Repository     string
	Name, Version  string // from the module's manifest
	Digest         string // SHA-256 of the module's bytes, "sha256:HEX"
	ManifestDigest string // digest of its OCI manifest, "sha256:HEX"; empty: there is none
	Fingerprint    sign.Fingerprint
	// ManifestUnknown is set when the manifest is not known yet, because reading it would
	// run the module. Then the name, version and fingerprint in a statement about these
	// bytes are used.
	ManifestUnknown bool
}

// Previous holds facts of the module that this one replaces, with the same meanings as in
// [Subject] and [Verdict]. The zero Previous: it replaces none.
type Previous struct {
	Signer  string
	Version string
	Issued  time.Time
	Digest  string
}

// Verdict is the signer of a module, with details.
type Verdict struct {
	// Signer is the publisher; empty: no known publisher. File is the name of the trust file
	// that lists it, and Namespace the one of its namespaces that holds this module.
	Signer, File, Namespace string
	Keys                    []string // IDs of the publisher's keys that signed, sorted
	// Issued is the latest time of the publisher's signatures; zero: unknown, as with cosign.
	Issued time.Time
	// Unknown are keys of no publisher that have signed the module, each once. Anybody can
	// make such a key.
	Unknown []sign.PublicKey
	// UnknownCosign is set when cosign signed with a key of no publisher, which is unknown.
	UnknownCosign bool
	Unread        []string // names of the signature formats that we cannot read, as others write them
}

// Reason is the kind of an [Error].
type Reason string

const (
	Malformed     Reason = "malformed" // it cannot be read, or was damaged
	RevokedKey    Reason = "revoked key"
	RevokedDigest Reason = "revoked module" // the digest is revoked, whoever signed the module

	// The statement, or its publisher, does not hold.
	Expired          Reason = "expired"
	IssuedInFuture   Reason = "issued in the future"
	PublisherExpired Reason = "publisher expired"
	OutsideNamespace Reason = "outside its namespace"
	TooFewKeys       Reason = "too few keys"

	// The signature is good, and about something else.
	OtherRepository  Reason = "another repository"
	OtherName        Reason = "another name"
	OtherVersion     Reason = "another version"
	OtherBytes       Reason = "other bytes"
	OtherFingerprint Reason = "another fingerprint" // of the descriptions, the schemas or the needs of its tools

	// The module may not replace the previous module.
	Stripped      Reason = "no longer signed"
	RolledBack    Reason = "rolled back"
	SameVersion   Reason = "version used twice" // for other bytes
	IssuedEarlier Reason = "issued earlier"
)

// Error is returned for a module that is refused because of its signatures.
type Error struct {
	Reason  Reason
	Signer  string // the publisher; empty: the signature is by no known publisher
	Message string // a sentence for the user
}

func (e *Error) Error() string {
	if e.Signer == "" {
		return "signature: " + e.Message
	}
	return fmt.Sprintf("signature of %s: %s", e.Signer, e.Message)
}

// Judge returns the signer of a module. If there is no signature, or only signatures of
// unknown keys, the module has no signer, and that is no error.
//
// One publisher is enough: the publisher of the previous module, else the first one in
// the files. Mistakes in other signatures do not matter then, such as an old signature
// that has expired beside its successor. If there is no publisher, any mistake is an
// [*Error]: a module with a signature of something else must not be taken for an unsigned
// one. A module that is revoked by its digest is always refused.
//
// now is the time when the module comes in. For a module that came in earlier, pass that time:
// expiry is judged by it. Revocations always count.
func (r *Rules) Judge(s Subject, e sign.Evidence, now time.Time, seen Previous) (Verdict, error) {
	digests := []string{s.Digest}
	if s.ManifestDigest != "" {
		digests = append(digests, s.ManifestDigest)
	}
	for _, d := range digests {
		if err := checkDigest(d); err != nil { // in another spelling, no revocation would match
			return Verdict{}, fmt.Errorf("judge signatures: %w", err)
		}
		if v, yes := r.revoked[d]; yes {
			return Verdict{}, &Error{RevokedDigest, "", fmt.Sprintf("%s is revoked %s", d, v)}
		}
	}
	if n := len(e.Envelopes) + len(e.Cosign) + len(e.Bundles); n > maxEvidence {
		return Verdict{}, &Error{Malformed, "", fmt.Sprintf("there are %d; at most %d are accepted", n, maxEvidence)}
	}
	c := court{rules: r, subject: s, now: now, votes: map[int]*vote{}, unread: slices.Clone(e.Unread)}
	for _, envelope := range e.Envelopes {
		c.envelope(envelope)
	}
	for _, signature := range e.Cosign {
		c.cosign(sign.VerifyCosign(signature, r.keys))
	}
	for _, bundle := range e.Bundles {
		c.cosign(sign.VerifyBundle(bundle, r.keys))
	}
	v, err := c.verdict(seen.Signer)
	if err != nil {
		return Verdict{}, err
	}
	if err := checkSuccession(s, v, seen); err != nil {
		return Verdict{}, err
	}
	return v, nil
}

// court collects the valid signatures of each publisher, and the first mistake.
type court struct {
	rules   *Rules
	subject Subject
	now     time.Time

	votes         map[int]*vote // votes by the index of the publisher
	unknown       []sign.PublicKey
	unknownCosign bool
	unread        []string
	firstError    *Error // the first mistake; nil: none so far
}

// vote holds the valid signatures of a module by one publisher.
type vote struct {
	keys      []string // IDs
	namespace string
	issued    time.Time
}

func (c *court) noteError(reason Reason, signer, format string, args ...any) {
	if c.firstError == nil {
		c.firstError = &Error{reason, signer, fmt.Sprintf(format, args...)}
	}
}

func (c *court) envelope(data []byte) {
	signed, err := sign.Open(data)
	if err != nil {
		c.noteError(Malformed, "", "%v", err)
		return
	}
	for _, k := range signed.ClaimedKeys() {
		if _, known := c.rules.owner[k]; known {
			continue
		}
		if v, yes := c.rules.revoked[k.ID()]; yes {
			c.noteError(RevokedKey, "", "the key %s is revoked %s", k.ID(), v)
			continue
		}
		if !slices.Contains(c.unknown, k) {
			c.unknown = append(c.unknown, k)
		}
	}
	st, by, err := signed.Verify(c.rules.keys)
	if err != nil {
		return // signed by no known key
	}
	if c.subject.ManifestUnknown {
		c.subject.Name, c.subject.Version, c.subject.Fingerprint = st.Name, st.Version, st.Fingerprint
	}
	for _, k := range by {
		p := c.rules.publishers[c.rules.owner[k]]
		switch reason, what := c.compareSubject(st); {
		case reason != "":
			c.noteError(reason, p.Name, "%s", what)
		case st.Issued.After(c.now.Add(maxSkew)):
			c.noteError(IssuedInFuture, p.Name, "it was issued on %s, which is still to come; see that the clock of this machine is right", formatTime(st.Issued))
		case !st.Expires.IsZero() && !c.now.Before(st.Expires):
			c.noteError(Expired, p.Name, "it expired on %s; the module has to be signed again", formatTime(st.Expires))
		default:
			c.count(k, st.Repository, st.Issued)
		}
	}
}

// compareSubject compares a statement with the subject. It returns the first difference, as a
// reason and in words; both are empty if there is none.
func (c *court) compareSubject(st sign.Statement) (Reason, string) {
	s := c.subject
	differs := func(what, signed, is string) string {
		return fmt.Sprintf("it is for the %s %q, and this module's is %.80q", what, signed, is)
	}
	switch {
	case s.Repository != "" && st.Repository == "":
		return OtherRepository, fmt.Sprintf("it is for a file, and this module is from %.80q", s.Repository)
	case s.Repository != "" && st.Repository != s.Repository:
		return OtherRepository, differs("repository", st.Repository, s.Repository)
	case st.Name != s.Name:
		return OtherName, differs("name", st.Name, s.Name)
	case st.Version != s.Version:
		return OtherVersion, differs("version", st.Version, s.Version)
	case st.Digest != s.Digest:
		return OtherBytes, differs("module", st.Digest, s.Digest)
	}
	var changed []string
	for _, f := range []struct{ what, signed, is string }{
		{"descriptions", st.Fingerprint.Description, s.Fingerprint.Description},
		{"schemas", st.Fingerprint.Schema, s.Fingerprint.Schema},
		{"needs", st.Fingerprint.Needs, s.Fingerprint.Needs},
	} {
		if f.signed != f.is {
			changed = append(changed, f.what)
		}
	}
	if changed != nil {
		return OtherFingerprint, fmt.Sprintf("it is for other %s of the tools than this module has", strings.Join(changed, " and "))
	}
	return "", ""
}

func (c *court) cosign(st sign.CosignStatement, k sign.PublicKey, err error) {
	if form, ok := errors.AsType[sign.UnsupportedFormError](err); ok {
		c.unread = append(c.unread, string(form))
		return
	}
	if errors.Is(err, sign.ErrNotSigned) {
		c.unknownCosign = true
		return
	}
	if err != nil {
		c.noteError(Malformed, "", "%v", err)
		return
	}
	p, s := c.rules.publishers[c.rules.owner[k]], c.subject
	st.Repository = cmp.Or(st.Repository, s.Repository) // a bundle is valid for its manifest in any repository
	switch {
	case s.Repository != "" && st.Repository != s.Repository:
		c.noteError(OtherRepository, p.Name, "it is for the repository %q, and this module's is %.80q", st.Repository, s.Repository)
	case s.ManifestDigest == "":
		c.noteError(OtherBytes, p.Name, "it is for the OCI manifest %s, and this module came without one", st.ManifestDigest)
	case st.ManifestDigest != s.ManifestDigest:
		c.noteError(OtherBytes, p.Name, "it is for the OCI manifest %s, and this module's is %s", st.ManifestDigest, s.ManifestDigest)
	default:
		c.count(k, st.Repository, time.Time{})
	}
}

// count adds a signature by the key k to the votes, if k may sign this subject at this time.
func (c *court) count(k sign.PublicKey, repository string, issued time.Time) {
	i := c.rules.owner[k]
	p, id := c.rules.publishers[i], k.ID()
	if v, yes := c.rules.revoked[id]; yes {
		c.noteError(RevokedKey, p.Name, "the key %s is revoked %s", id, v)
		return
	}
	if !p.Expires.IsZero() && !c.now.Before(p.Expires) {
		c.noteError(PublisherExpired, p.Name, "%s trusts it until %s only", p.file, formatTime(p.Expires))
		return
	}
	ns, holds := p.namespace(repository, c.subject.Name)
	if !holds {
		c.noteError(OutsideNamespace, p.Name, "%s does not let it sign %s", p.file, cmp.Or(repository, "the file "+c.subject.Name))
		return
	}
	for _, other := range c.rules.publishers {
		if n, has := other.namespace(repository, c.subject.Name); has && other.fileIndex < p.fileIndex && !strings.HasSuffix(n, "*") {
			c.noteError(OutsideNamespace, p.Name, "%s keeps %s for %s", other.file, n, other.Name)
			return
		}
	}
	v := c.votes[i]
	if v == nil {
		v = &vote{namespace: ns}
		c.votes[i] = v
	}
	if !slices.Contains(v.keys, id) {
		v.keys = append(v.keys, id)
	}
	if issued.After(v.issued) {
		v.issued = issued
	}
}

// namespace returns the longest of the publisher's namespaces that hold a module; false: none
// does.
func (p Publisher) namespace(repository, name string) (string, bool) {
	longest, found := "", false
	for _, n := range p.Namespaces {
		file, isFile := strings.CutPrefix(n, "file:")
		switch {
		case n == "*",
			isFile && repository == "" && (file == "*" || file == name),
			!isFile && (repository == n || strings.HasPrefix(repository, n+"/")):
			if found = true; len(n) > len(longest) {
				longest = n
			}
		}
	}
	return longest, found
}

// verdict chooses among the publishers with enough signatures. It prefers the publisher with
// the name previous, and else takes the first one.
func (c *court) verdict(previous string) (Verdict, error) {
	chosen := -1
	for i, p := range c.rules.publishers {
		v := c.votes[i]
		switch {
		case v == nil:
		case len(v.keys) < p.Threshold:
			c.noteError(TooFewKeys, p.Name, "%d of its keys have to sign, and %d did", p.Threshold, len(v.keys))
		case chosen < 0 || p.Name == previous:
			chosen = i
		}
	}
	if chosen < 0 {
		if c.firstError != nil {
			return Verdict{}, c.firstError
		}
		return Verdict{Unknown: c.unknown, UnknownCosign: c.unknownCosign, Unread: c.unread}, nil
	}
	p, v := c.rules.publishers[chosen], c.votes[chosen]
	slices.Sort(v.keys)
	return Verdict{Signer: p.Name, File: p.file, Namespace: v.namespace, Keys: v.keys, Issued: v.issued, Unknown: c.unknown}, nil
}

// checkSuccession returns an error if a module may not replace the previous one. Another
// signer is no error: a person has to approve the module like a new one.
func checkSuccession(s Subject, v Verdict, seen Previous) error {
	fail := func(reason Reason, format string, args ...any) error {
		return &Error{reason, seen.Signer, fmt.Sprintf(format, args...)}
	}
	if seen.Signer == "" {
		return nil
	}
	if v.Signer == "" {
		return fail(Stripped, "the module that is there now has one, and this module has none that counts; remove the one that is there first")
	}
	if v.Signer != seen.Signer {
		return nil
	}
	if sign.ValidVersion(seen.Version) {
		switch order := semver.Compare("v"+s.Version, "v"+seen.Version); {
		case order < 0:
			return fail(RolledBack, "version %.80q is older than %s, which is there now; remove that first to go back", s.Version, seen.Version)
		case order == 0 && s.Digest != seen.Digest:
			return fail(SameVersion, "version %s is there already, with other bytes: %s, and not %s", seen.Version, seen.Digest, s.Digest)
		}
	}
	if !v.Issued.IsZero() && v.Issued.Before(seen.Issued) {
		return fail(IssuedEarlier, "it was issued on %s, before that of what is there now: %s", formatTime(v.Issued), formatTime(seen.Issued))
	}
	return nil
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
