package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry/oci"
	"github.com/stockade-dev/stockade/host/registry/sign"
	"github.com/stockade-dev/stockade/host/registry/source"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/registry/trust"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// Sandbox reads manifests and compiles modules. It gives a module no access to anything.
type Sandbox interface {
	Describer
	Compile(ctx context.Context, mod *tool.Module) error
}

// Reviewer checks modules before they are stored.
type Reviewer struct {
	Store         *store.Store
	Sandbox       Sandbox
	Trust         *trust.Rules
	Ceiling       policy.Ceiling
	Administrator string // the name of the trust file whose publishers are the administrator's
	Now           func() time.Time
	RetryRefused  bool // review modules again that were refused before, see [Reviewer.SyncSystem]
}

// Request describes a module that a person wants to add.
type Request struct {
	Candidate *source.Candidate
	// Describe returns the module with a description by the person added; nil: it is
	// reviewed as it came.
	Describe   func(context.Context, *tool.Module) (*tool.Module, error)
	Name       string // the name under which it will be offered; empty: the name in its manifest
	Project    string // the workspace for which it is added; empty: all workspaces
	LockSHA256 string // the SHA-256 of the lockfile with the module; empty: no lockfile names the module
	System     bool   // it is in the administrator's folder, which approves it
	Stamp      string // the [SystemFile] stamp of its file; empty: it is no system file
	AllowLarge bool   // the person permits compiling it although it is large
}

// Review is a module in the form in which it would be stored, with all that a person has
// to know before the yes. Nothing has been stored.
type Review struct {
	Record   store.Record
	Verdict  trust.Verdict
	Previous *store.Record // the record that it would replace; nil: it is new
	Changes  []Change      // since Previous
	code     []byte
}

// IsUnchanged reports whether the same bytes by the same signer are stored already.
func (r *Review) IsUnchanged() bool {
	return r.Previous != nil && r.Previous.Digest == r.Record.Digest && r.Previous.Signer == r.Record.Signer
}

// KeepsAllowance reports whether the allowances of the previous version stay: its manifest
// says and asks for the same, and the same publisher has signed it. The bytes must be equal if
// nobody has signed the module, or if nothing proves that it is not an older version. See
// RATIONALE, "Why is what a module may use bound to what it says and not to its version?"
func (r *Review) KeepsAllowance() bool {
	ordered := r.Record.Signer != "" && (!r.Record.Issued.IsZero() || r.Record.BaseDigest == "" && sign.ValidVersion(r.Record.Manifest.Version))
	return r.Previous != nil && r.Previous.Fingerprint == r.Record.Fingerprint && r.Previous.Signer == r.Record.Signer &&
		(ordered || r.Record.System || r.Previous.Digest == r.Record.Digest)
}

// Change is one difference from the version that the person approved.
type Change struct {
	Title         string // the difference in our words, with names of tools as plain text
	Before, After string // texts of the module; empty: nothing to compare
	AboutAccess   bool   // the tool asks for other access
}

// RefusedError is returned for a module that cannot be added because of the module itself.
type RefusedError struct {
	Module string
	Err    error
	Hint   string // a remedy; can be empty
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s is not added: %v", e.Module, e.Err) }

func (e *RefusedError) Unwrap() error { return e.Err }

// Review checks a module in every way that there is: its bytes, its manifest, its
// signatures, the layers of the policy, its name, and that it compiles. If the module is
// at fault, the error is a *RefusedError.
func (r *Reviewer) Review(ctx context.Context, q Request) (*Review, error) {
	c := q.Candidate
	// This comes before any code of the module runs, even to ask for its manifest. Errors of
	// a signature are reported below, where more is known of the module.
	mod, _, _ := r.Module(q.Name, c)
	mod, base, err := r.describe(ctx, mod, q)
	if err != nil {
		return nil, err
	}
	code, err := mod.Read()
	if err != nil {
		return nil, err
	}
	digest := c.Digest
	if base != "" {
		digest = mod.Digest
	}
	out := &Review{code: code}
	manifest, err := r.Sandbox.Describe(ctx, mod)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(q.Name, manifest.Name)
	refuse := func(err error, hint string) (*Review, error) { return nil, &RefusedError{name, err, hint} }
	records, err := r.Store.Records()
	if err != nil {
		return nil, err
	}
	var others []string
	for _, rec := range records {
		switch {
		case rec.Name == name && rec.Project == q.Project && rec.System == q.System:
			out.Previous = &rec
		case rec.Project == q.Project:
			others = append(others, rec.Name)
		}
	}
	if err := CheckName(name, others); err != nil {
		return refuse(err, "choose another with --as NAME")
	}
	var seen trust.Previous
	if w := out.Previous; w != nil {
		seen = trust.Previous{Signer: w.Signer, Version: w.Manifest.Version, Digest: "sha256:" + w.OriginalDigest(), Issued: w.Issued}
		if w.BaseDigest != "" { // the person wrote the version, no publisher did
			seen.Version = ""
		}
	}
	evidence, err := json.Marshal(c.Evidence)
	if err != nil {
		return nil, err
	}
	out.Record = store.Record{
		Name: name, Project: q.Project, Source: c.Source, Repository: c.Repository, ManifestDigest: c.ManifestDigest, Digest: digest, Bytes: int64(len(code)), BaseDigest: base,
		Manifest: manifest, Fingerprint: manifest.Fingerprint(), Evidence: evidence, Added: r.Now().UTC(),
		LockSHA256: q.LockSHA256, System: q.System, Stamp: q.Stamp, AllowLarge: q.AllowLarge,
	}
	if out.Verdict, err = judge(r.Trust, out.Record, c.Evidence, r.Now(), seen); err != nil {
		return refuse(err, refusedHint(err, name))
	}
	r.setSigner(mod, out.Verdict)
	mod.Version = manifest.Version
	if ok, why, from := r.Ceiling.PermitsAdd(mod, cmp.Or(c.Repository, PlaceOf(c.Source))); !ok && !q.System {
		if len(out.Verdict.Unread) > 0 {
			why += " (or signed in a form that this program does not read: " + out.Verdict.Unread[0] + ")"
		}
		return refuse(fmt.Errorf("%s: %s", why, from), "")
	}
	out.Record.Signer, out.Record.Namespace, out.Record.Keys, out.Record.Issued = mod.Signer, mod.Namespace, out.Verdict.Keys, out.Verdict.Issued
	out.Record.FirstAdded = out.Record.Added
	if w := out.Previous; w != nil {
		out.Record.FirstAdded = w.FirstAdded
		out.Changes = changes(w, &out.Record)
		out.Record.OffTools = slices.Clone(w.OffTools)
		if w.OffReason == store.OffByPerson {
			out.Record.OffReason = w.OffReason
		}
		if out.KeepsAllowance() {
			out.Record.Allowances = maps.Clone(w.Allowances)
		}
	}
	if q.System { // it is compiled at its first call
		return out, nil
	}
	// See RATIONALE, "Why does `tool add` compile before it asks?"
	return out, r.Sandbox.Compile(ctx, mod)
}

// Module returns the module of a candidate. Its signer is set as far as that needs no
// manifest. as is the name of the module; empty: the end of its source is the name. The error
// is about its signatures; the module is valid all the same.
func (r *Reviewer) Module(as string, c *source.Candidate) (*tool.Module, trust.Verdict, error) {
	mod := tool.NewModule(cmp.Or(as, NameOf(c.Source)), tool.OriginAdded, c.Source, c.Code)
	asIs := trust.Subject{Repository: c.Repository, Digest: "sha256:" + mod.Digest, ManifestDigest: c.ManifestDigest, ManifestUnknown: true}
	v, err := r.Trust.Judge(asIs, c.Evidence, r.Now(), trust.Previous{})
	if err == nil {
		r.setSigner(mod, v)
	}
	return mod, v, err
}

func (r *Reviewer) setSigner(mod *tool.Module, v trust.Verdict) {
	mod.Signer, mod.Namespace, mod.AdminKnowsSigner = v.Signer, v.Namespace, v.Signer != "" && v.File == r.Administrator
}

// describe adds the person's description to a module. base is the digest of the module without
// the description; empty: there is no description. It refuses a module whose publisher has
// signed the publisher's own description, because the signature would not cover the person's.
func (r *Reviewer) describe(ctx context.Context, mod *tool.Module, q Request) (out *tool.Module, base string, err error) {
	c := q.Candidate
	if q.Describe == nil {
		return mod, "", nil
	}
	if mod.Digest != c.Digest {
		return nil, "", fmt.Errorf("what was fetched of %s has changed since", mod.Name)
	}
	if out, err = q.Describe(ctx, mod); err != nil {
		return nil, "", err
	}
	m, err := wasm.Decode(c.Code)
	if err != nil {
		return nil, "", err
	}
	_, own := wasm.CustomSection(m, wasm.ManifestSection)
	if len(c.Evidence.Envelopes) > 0 || own && len(c.Evidence.Cosign)+len(c.Evidence.Bundles) > 0 {
		return nil, "", &RefusedError{mod.Name, errors.New("it is signed with a description of its own, and yours would take the place of that"), "add it without --describe"}
	}
	return out, c.Digest, nil
}

// PlaceOf returns the place in the network that a reference names, in the form of the
// policy's modules.registries; empty for a reference to this machine.
func PlaceOf(ref string) string {
	if r, err := oci.ParseReference(ref); err == nil {
		return r.Repository()
	}
	if u, err := url.Parse(ref); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
		return u.Host + path.Clean("/"+u.Path)
	}
	return ""
}

// NameOf returns a name for a module before its manifest is known: the end of its source,
// without tag and digest.
func NameOf(source string) string {
	name := source[strings.LastIndexAny(source, `/\\`)+1:]
	if i := strings.IndexAny(name, ":@"); i > 0 {
		name = name[:i]
	}
	return strings.TrimSuffix(name, ".wasm")
}

// refusedHint returns a remedy for a module that was refused because of its signatures;
// empty: there is none.
func refusedHint(err error, name string) string {
	e, ok := errors.AsType[*trust.Error](err)
	switch {
	case ok && e.Reason == trust.Stripped:
		return "if you want it all the same: stockade tool remove " + name + ", and add it again"
	case ok && e.Reason == trust.OutsideNamespace:
		return "if " + e.Signer + " may sign it, add where it is to the namespaces in that file; `stockade help trust` says how"
	}
	return ""
}

// changes lists the differences between two records of a module, the most important first.
func changes(was, is *store.Record) (out []Change) {
	if was.Signer != is.Signer {
		out = append(out, Change{Title: "another signer", Before: cmp.Or(was.Signer, "nobody whom you know"), After: cmp.Or(is.Signer, "nobody whom you know")})
	}
	if was.Repository != is.Repository {
		out = append(out, Change{Title: "from another place", Before: was.Source, After: is.Source})
	}
	if k, o := is.Manifest.Kind(), was.Manifest.Kind(); k != o {
		const native = "a module of tools"
		out = append(out, Change{Title: "another kind of module", Before: cmp.Or(o, native), After: cmp.Or(k, native)})
	}
	before := map[string]tool.Spec{}
	for _, s := range was.Manifest.Tools {
		before[s.Name] = s
	}
	var texts []Change
	for _, s := range is.Manifest.Tools {
		o, ok := before[s.Name]
		delete(before, s.Name)
		if !ok {
			texts = append(texts, Change{Title: "new tool: " + s.Name, After: s.Description})
			if s.Capabilities.String() != (tool.Capabilities{}).String() {
				out = append(out, Change{Title: s.Name + " is new and wants more than to compute", After: s.Capabilities.String(), AboutAccess: true})
			}
			continue
		}
		if a, b := jsonText(o.Run), jsonText(s.Run); a != b {
			texts = append(texts, Change{Title: s.Name + " is run in another way", Before: a, After: b})
		}
		a, b := o.Texts(), s.Texts()
		if a.AsksFor != b.AsksFor {
			out = append(out, Change{Title: s.Name + " asks for something else", Before: a.AsksFor, After: b.AsksFor, AboutAccess: true})
		}
		if a.Description != b.Description {
			texts = append(texts, Change{Title: "changed description: " + s.Name, Before: a.Description, After: b.Description})
		}
		if a, b := arguments(o), arguments(s); a != b {
			texts = append(texts, Change{Title: "changed arguments: " + s.Name, Before: a, After: b})
		}
	}
	for _, s := range was.Manifest.Tools {
		if _, gone := before[s.Name]; gone {
			texts = append(texts, Change{Title: "gone: " + s.Name})
		}
	}
	if !maps.Equal(was.Manifest.Config, is.Manifest.Config) {
		texts = append(texts, Change{Title: "configured in another way", Before: jsonText(was.Manifest.Config), After: jsonText(is.Manifest.Config)})
	}
	return append(out, texts...)
}

// jsonText returns a value of a manifest as JSON; empty: the JSON is null.
func jsonText[T any](v T) string {
	if text := string(tool.Marshal(v)); text != "null" {
		return text
	}
	return ""
}

// arguments returns the schema of a tool's arguments as a text that changes when any
// argument does.
func arguments(s tool.Spec) string {
	s.Run = nil
	return s.Texts().Schema
}

// Save puts modules into the store, all or none, and removes the records that they replace.
func Save(s *store.Store, reviews ...*Review) error {
	return s.Change(codesOf(reviews), func(records []store.Record) ([]store.Record, error) {
		for _, r := range reviews {
			i, err := r.find(records)
			if err != nil {
				return nil, err
			}
			if i >= 0 {
				records[i] = r.Record
			} else {
				records = append(records, r.Record)
			}
		}
		return records, nil
	})
}

func codesOf(reviews []*Review) (codes [][]byte) {
	for _, r := range reviews {
		codes = append(codes, r.code)
	}
	return codes
}

// find returns the index of the module's record; -1: there is none. It returns an error if it is
// not the record that was reviewed. Asking the person can take long, and a module that somebody
// has revoked meanwhile must not come back. OffReason may differ: an update sets it itself.
func (r *Review) find(records []store.Record) (int, error) {
	i := slices.IndexFunc(records, func(o store.Record) bool { return o.Name == r.Record.Name && o.Project == r.Record.Project })
	switch {
	case i < 0 && r.Previous == nil:
	case i < 0:
		return i, fmt.Errorf("%s was removed by somebody else meanwhile; do it again", r.Record.Name)
	case r.Previous == nil || records[i].Digest != r.Previous.Digest || records[i].Signer != r.Previous.Signer || records[i].System != r.Previous.System ||
		!slices.Equal(records[i].OffTools, r.Previous.OffTools) || !maps.EqualFunc(records[i].Allowances, r.Previous.Allowances, tool.Allowance.Equal):
		return i, fmt.Errorf("%s was changed by somebody else meanwhile; do it again", r.Record.Name)
	}
	return i, nil
}

// SetOffReason sets the reason why the tools of a module are not offered. Empty: they are
// offered again, unless the person has switched the module off.
func SetOffReason(s *store.Store, r store.Record, why string) error {
	return s.Change(nil, func(records []store.Record) ([]store.Record, error) {
		for i := range records {
			if o := &records[i]; o.Name == r.Name && o.Project == r.Project && o.OffReason != store.OffByPerson {
				o.OffReason = why
			}
		}
		return records, nil
	})
}

// Wants is the access that a module asks for. A module with zero Wants only computes.
type Wants struct {
	Files   tool.Files
	Hosts   []string // the hosts that it names
	AnyHost bool     // it asks for the network and names no host
	Secrets []tool.Secret
	Exec    bool
	Store   bool // it wants to keep values in a session
	// CanSendFiles is set when the module could send files away: one of its tools reads files
	// and reaches the network, or one reads, another reaches, and both have the store.
	CanSendFiles bool
	// Inferred is set when the module does not declare its access: the other fields are
	// what it could use.
	Inferred bool
}

// WantsOf adds up the access that the tools of a module ask for. Each secret is listed
// once, in the order in which they are first asked for.
func WantsOf(m tool.Manifest) (w Wants) {
	w.Inferred = m.Inferred
	var reads, reaches bool
	secrets := map[string]bool{} // a stranger's manifest may name thousands
	for _, s := range m.Tools {
		c := s.Capabilities
		if c.Files == tool.FilesWrite || w.Files == tool.FilesNone {
			w.Files = c.Files
		}
		w.Hosts = append(w.Hosts, c.Hosts...)
		w.AnyHost = w.AnyHost || c.Network != tool.NetworkNone && len(c.Hosts) == 0
		for _, secret := range c.Secrets {
			if words := secret.String(); !secrets[words] {
				secrets[words] = true
				w.Secrets = append(w.Secrets, secret)
			}
		}
		w.Exec = w.Exec || c.Exec != ""
		w.Store = w.Store || c.Store
		reads, reaches = reads || c.Store && c.Files != tool.FilesNone, reaches || c.Store && c.Network != tool.NetworkNone
		w.CanSendFiles = w.CanSendFiles || c.Network != tool.NetworkNone && c.Files != tool.FilesNone
	}
	w.CanSendFiles = w.CanSendFiles || reads && reaches
	slices.Sort(w.Hosts)
	w.Hosts = slices.Compact(w.Hosts)
	return w
}

// Nothing reports whether the module only computes.
func (w Wants) Nothing() bool {
	return w.Files == tool.FilesNone && len(w.Hosts) == 0 && !w.AnyHost && len(w.Secrets) == 0 && !w.Exec && !w.Store
}

// String returns the wants in one line.
func (w Wants) String() string {
	var out []string
	switch w.Files {
	case tool.FilesRead:
		out = append(out, "to read files")
	case tool.FilesWrite:
		out = append(out, "to read and change files")
	}
	switch {
	case w.AnyHost:
		out = append(out, "hosts that you name")
	case len(w.Hosts) > 0:
		out = append(out, "hosts "+strings.Join(w.Hosts, ", "))
	}
	for _, s := range w.Secrets {
		out = append(out, "the secret "+s.String())
	}
	if w.Exec {
		out = append(out, "to run commands")
	}
	if w.Store {
		out = append(out, "to keep things in a session")
	}
	switch {
	case out == nil:
		return "nothing: it only computes"
	case w.Inferred:
		return "it does not say what; its imports could use: " + strings.Join(w.InferredAccess(), ", ")
	}
	return strings.Join(out, "; ")
}

// InferredAccess returns the kinds of access, in words, that a module without declared
// access could use.
func (w Wants) InferredAccess() (out []string) {
	if w.Files != tool.FilesNone {
		out = append(out, "files")
	}
	if w.AnyHost || len(w.Hosts) > 0 {
		out = append(out, "network")
	}
	return out
}

// DefaultAllowance returns the allowance that a yes gives a module: its hosts and
// secrets, the files of the workspace work if it asks for files, a store, and commands,
// each of which is still asked about. A module that replaces the record was keeps the
// directories of that record, and its hosts if the new module names none. A module that
// does not declare its access gets nothing.
func (w Wants) DefaultAllowance(work string, was *store.Record) tool.Allowance {
	if w.Inferred {
		return tool.Allowance{}
	}
	var had tool.Allowance
	switch {
	case was != nil:
		had = TotalAllowance(*was)
	case w.Files == tool.FilesRead:
		had.Read = []string{work}
	case w.Files == tool.FilesWrite:
		had.Write = []string{work}
	}
	out := tool.Allowance{Hosts: w.Hosts, Secrets: tool.SecretNames(w.Secrets), Exec: w.Exec, Store: w.Store}
	if w.Files != tool.FilesNone {
		out.Read = had.Read
	}
	if w.Files == tool.FilesWrite {
		out.Write = had.Write
	}
	if w.AnyHost {
		out.Hosts = slices.Concat(out.Hosts, had.Hosts)
	}
	return out.With(tool.Allowance{}) // removes duplicates
}

// CheckAllowance returns an error if an allowance holds something that the module does
// not ask for: it would have no effect.
func (w Wants) CheckAllowance(a tool.Allowance) error {
	for _, s := range a.Secrets {
		if !slices.ContainsFunc(w.Secrets, func(o tool.Secret) bool { return o.Name == s }) {
			return fmt.Errorf("does not ask for the secret %s", s)
		}
	}
	switch {
	case len(a.Read)+len(a.Write) > 0 && w.Files == tool.FilesNone:
		return errors.New("does not ask for files")
	case len(a.Write) > 0 && w.Files == tool.FilesRead:
		return errors.New("asks to read files and not to change them")
	case len(a.Hosts) > 0 && len(w.Hosts) == 0 && !w.AnyHost:
		return errors.New("does not ask for the network")
	case a.Exec && !w.Exec:
		return errors.New("does not ask to run commands")
	case a.Store && !w.Store:
		return errors.New("does not ask for a store")
	}
	return nil
}

var errNoModule = errors.New("there is no added module")

// Find returns the index of the record that NAME or NAME:TOOL means in a workspace. It is a
// record of the project only if the person has no module of that name, or if the lockfile
// replaces the person's. inner is the name of the tool in its module; empty: name has none.
func Find(records []store.Record, name string, p *Project) (i int, inner string, err error) {
	mod, inner, _ := strings.Cut(name, ":")
	i = slices.IndexFunc(records, func(r store.Record) bool { return r.Name == mod && r.Project == "" })
	if i < 0 || p.replaces(records, records[i]) {
		i = slices.IndexFunc(records, func(r store.Record) bool { return r.Name == mod && r.Project == p.Workspace })
	}
	if i < 0 {
		return -1, "", fmt.Errorf("%w %.80q", errNoModule, mod)
	}
	m := records[i].Manifest
	if inner == "" {
		return i, "", nil
	}
	inner = strings.TrimPrefix(inner, mod+"_")
	if !slices.ContainsFunc(m.Tools, func(s tool.Spec) bool { return s.Name == inner }) {
		return -1, "", fmt.Errorf("module %s has no tool %.80q", mod, inner)
	}
	return i, inner, nil
}
