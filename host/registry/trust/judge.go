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
	// maxEvidence is how many envelopes and signatures of cosign are looked at, more
	// than a module comes with.
	maxEvidence = 32
	// maxSkew is how far the clock of a signer may be ahead.
	maxSkew = 5 * time.Minute
)

// Rules are all files together. The zero Rules know nobody.
type Rules struct {
	publishers []publisher
	keys       []sign.PublicKey
	owner      map[sign.PublicKey]int // an index of publishers
	revoked    map[string]revocation  // by ID and digest
}

type publisher struct {
	Publisher
	file  string
	place int // of the file, from 0
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

// Combine puts files together, the administrator's first; nil is a file that is
// not there.
func Combine(files ...*File) *Rules {
	r := &Rules{owner: map[sign.PublicKey]int{}, revoked: map[string]revocation{}}
	for place, f := range files {
		if f == nil {
			continue
		}
		for _, v := range f.Revoked {
			what := v.Key + v.Digest // one of the two
			if _, before := r.revoked[what]; !before {
				r.revoked[what] = revocation{v.Why, f.Name}
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

// Revokes reports whether one of these IDs of keys and digests is revoked. It is cheap:
// whether a module still has a signer is for [Rules.Judge] to say then.
func (r *Rules) Revokes(what ...string) bool {
	return slices.ContainsFunc(what, func(s string) bool { _, yes := r.revoked[s]; return yes })
}

// Knows reports whether one of these IDs is that of a publisher's key.
func (r *Rules) Knows(ids ...string) bool {
	return slices.ContainsFunc(r.keys, func(k sign.PublicKey) bool { return slices.Contains(ids, k.ID()) })
}

// Owners returns the names of the publishers that keys with these IDs belong to, each once.
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

// Subject is the module that signatures are held against. Its facts are what the
// caller found, not what it was told: digests are of bytes that it hashed, and the
// OCI manifest, if there is one, leads to the module.
type Subject struct {
	// Repository is where it was found, HOST/REPOSITORY; empty where it was found in a
	// file, in which case a statement may name any that its signer publishes in.
	Repository     string
	Name, Version  string // as its manifest says
	Digest         string // of its bytes, "sha256:HEX"
	ManifestDigest string // of its OCI manifest, "sha256:HEX"; empty: there is none
	Fingerprint    sign.Fingerprint
	// Unasked says that the manifest is not known yet, because to ask for it runs the module.
	// Then the name, version and fingerprint in a statement about these bytes count.
	Unasked bool
}

// Seen is what was judged before of the module that this one replaces, with the
// same meanings as in [Subject] and [Verdict]. The zero Seen is nothing.
type Seen struct {
	Signer  string
	Version string
	Issued  time.Time
	Digest  string
}

// Verdict says who has signed a module.
type Verdict struct {
	// Signer is the publisher; empty: nobody that is known. File is the name of the
	// file that says so, and Namespace the entry of it that permits this module.
	Signer, File, Namespace string
	// Keys are the IDs of the keys of the publisher that signed, sorted.
	Keys []string
	// Issued is when, at the latest; zero: cosign does not say.
	Issued time.Time
	// Unknown are keys of no publisher that have signed something, each once. Anybody
	// can make such a key.
	Unknown []sign.PublicKey
	// Cosigned is set if cosign has signed with an unknown key, which belongs to no publisher.
	Cosigned bool
	// Unread are the forms of signatures that are not read here, as others name them.
	Unread []string
}

// Reason says why signatures were refused.
type Reason string

const (
	Malformed     Reason = "malformed" // it cannot be read, or was damaged
	RevokedKey    Reason = "revoked key"
	RevokedDigest Reason = "revoked module" // whoever signed it

	// Of the statement, and of the publisher.
	Expired          Reason = "expired"
	NotYet           Reason = "issued in the future"
	PublisherExpired Reason = "publisher expired"
	OutsideNamespace Reason = "outside its namespace"
	TooFewKeys       Reason = "too few keys"

	// A good signature, of something else.
	OtherRepository  Reason = "another repository"
	OtherName        Reason = "another name"
	OtherVersion     Reason = "another version"
	OtherBytes       Reason = "other bytes"
	OtherFingerprint Reason = "another fingerprint" // of description, schema or needs

	// Compared with what was seen.
	Stripped      Reason = "no longer signed"
	RolledBack    Reason = "rolled back"
	SameVersion   Reason = "version used twice" // for other bytes
	IssuedEarlier Reason = "issued earlier"
)

// Error says why a module is not taken.
type Error struct {
	Reason Reason
	Signer string // the publisher; empty where it is of none
	What   string // a sentence for the user
}

func (e *Error) Error() string {
	if e.Signer == "" {
		return "signature: " + e.What
	}
	return fmt.Sprintf("signature of %s: %s", e.Signer, e.What)
}

// Judge says who has signed a module. Without a signature, or with those of unknown
// keys alone, that is nobody, and no error.
//
// One publisher is enough: the one that signed what was seen, else the first of the
// files. What is wrong with other signatures does not matter then, as an old one
// that has expired beside its successor. Where no publisher is, anything wrong is an
// [*Error]: a module that comes with a signature of something else is not to be
// taken for one without. What is revoked by its digest is always refused.
//
// Now is when the module comes in. For one that came in earlier it is that time:
// then what has expired since counts, and what was revoked since does not.
func (r *Rules) Judge(s Subject, e sign.Evidence, now time.Time, seen Seen) (Verdict, error) {
	digests := []string{s.Digest}
	if s.ManifestDigest != "" {
		digests = append(digests, s.ManifestDigest)
	}
	for _, d := range digests {
		if err := digest(d); err != nil { // in another form it would never be revoked
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
	if err := succeeds(s, v, seen); err != nil {
		return Verdict{}, err
	}
	return v, nil
}

// court gathers what speaks for each publisher, and what is wrong.
type court struct {
	rules   *Rules
	subject Subject
	now     time.Time

	votes    map[int]*vote // by the index of the publisher
	unknown  []sign.PublicKey
	cosigned bool
	unread   []string
	wrong    *Error // the first thing
}

// vote is what speaks for one publisher.
type vote struct {
	keys      []string // IDs
	namespace string
	issued    time.Time
}

func (c *court) fail(reason Reason, signer, format string, args ...any) {
	if c.wrong == nil {
		c.wrong = &Error{reason, signer, fmt.Sprintf(format, args...)}
	}
}

func (c *court) envelope(data []byte) {
	signed, err := sign.Open(data)
	if err != nil {
		c.fail(Malformed, "", "%v", err)
		return
	}
	for _, k := range signed.Claims() {
		if _, known := c.rules.owner[k]; known {
			continue
		}
		if v, yes := c.rules.revoked[k.ID()]; yes {
			c.fail(RevokedKey, "", "the key %s is revoked %s", k.ID(), v)
			continue
		}
		if !slices.Contains(c.unknown, k) {
			c.unknown = append(c.unknown, k)
		}
	}
	st, by, err := signed.Verify(c.rules.keys)
	if err != nil {
		return // by nobody that is known
	}
	if c.subject.Unasked {
		c.subject.Name, c.subject.Version, c.subject.Fingerprint = st.Name, st.Version, st.Fingerprint
	}
	for _, k := range by {
		p := c.rules.publishers[c.rules.owner[k]]
		switch reason, what := c.about(st); {
		case reason != "":
			c.fail(reason, p.Name, "%s", what)
		case st.Issued.After(c.now.Add(maxSkew)):
			c.fail(NotYet, p.Name, "it was issued on %s, which is still to come; see that the clock of this machine is right", day(st.Issued))
		case !st.Expires.IsZero() && !c.now.Before(st.Expires):
			c.fail(Expired, p.Name, "it expired on %s; the module has to be signed again", day(st.Expires))
		default:
			c.count(k, st.Repository, st.Issued)
		}
	}
}

// about says what a statement speaks of, if that is not the subject.
func (c *court) about(st sign.Statement) (Reason, string) {
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
	if form, ok := errors.AsType[sign.FormError](err); ok {
		c.unread = append(c.unread, string(form))
		return
	}
	if errors.Is(err, sign.ErrNotSigned) {
		c.cosigned = true
		return
	}
	if err != nil {
		c.fail(Malformed, "", "%v", err)
		return
	}
	p, s := c.rules.publishers[c.rules.owner[k]], c.subject
	st.Repository = cmp.Or(st.Repository, s.Repository) // a bundle holds for the manifest, wherever that is
	switch {
	case s.Repository != "" && st.Repository != s.Repository:
		c.fail(OtherRepository, p.Name, "it is for the repository %q, and this module's is %.80q", st.Repository, s.Repository)
	case s.ManifestDigest == "":
		c.fail(OtherBytes, p.Name, "it is for the OCI manifest %s, and this module came without one", st.ManifestDigest)
	case st.ManifestDigest != s.ManifestDigest:
		c.fail(OtherBytes, p.Name, "it is for the OCI manifest %s, and this module's is %s", st.ManifestDigest, s.ManifestDigest)
	default:
		c.count(k, st.Repository, time.Time{})
	}
}

// count takes a signature for the subject as one of its publisher, if the key may
// sign there and now.
func (c *court) count(k sign.PublicKey, repository string, issued time.Time) {
	i := c.rules.owner[k]
	p, id := c.rules.publishers[i], k.ID()
	if v, yes := c.rules.revoked[id]; yes {
		c.fail(RevokedKey, p.Name, "the key %s is revoked %s", id, v)
		return
	}
	if !p.Expires.IsZero() && !c.now.Before(p.Expires) {
		c.fail(PublisherExpired, p.Name, "%s trusts it until %s only", p.file, day(p.Expires))
		return
	}
	ns, holds := p.namespace(repository, c.subject.Name)
	if !holds {
		c.fail(OutsideNamespace, p.Name, "%s does not let it sign %s", p.file, cmp.Or(repository, "the file "+c.subject.Name))
		return
	}
	for _, other := range c.rules.publishers {
		if n, has := other.namespace(repository, c.subject.Name); has && other.place < p.place && !strings.HasSuffix(n, "*") {
			c.fail(OutsideNamespace, p.Name, "%s keeps %s for %s", other.file, n, other.Name)
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

// namespace is the longest entry that holds a module.
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

// verdict chooses among the publishers for whom enough speaks.
func (c *court) verdict(before string) (Verdict, error) {
	chosen := -1
	for i, p := range c.rules.publishers {
		v := c.votes[i]
		switch {
		case v == nil:
		case len(v.keys) < p.Threshold:
			c.fail(TooFewKeys, p.Name, "%d of its keys have to sign, and %d did", p.Threshold, len(v.keys))
		case chosen < 0 || p.Name == before:
			chosen = i
		}
	}
	if chosen < 0 {
		if c.wrong != nil {
			return Verdict{}, c.wrong
		}
		return Verdict{Unknown: c.unknown, Cosigned: c.cosigned, Unread: c.unread}, nil
	}
	p, v := c.rules.publishers[chosen], c.votes[chosen]
	slices.Sort(v.keys)
	return Verdict{Signer: p.Name, File: p.file, Namespace: v.namespace, Keys: v.keys, Issued: v.issued, Unknown: c.unknown}, nil
}

// succeeds says why a module may not replace what was seen. Another signer than
// before is no error: it has to be approved like a new module.
func succeeds(s Subject, v Verdict, seen Seen) error {
	fail := func(reason Reason, format string, args ...any) error {
		return &Error{reason, seen.Signer, fmt.Sprintf(format, args...)}
	}
	if seen.Signer == "" {
		return nil
	}
	if v.Signer == "" {
		return fail(Stripped, "what is there now has one, and this module has none that counts; remove what is there first to take it")
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
		return fail(IssuedEarlier, "it was issued on %s, before that of what is there now: %s", day(v.Issued), day(seen.Issued))
	}
	return nil
}

// day is a time for people.
func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
