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

// Sandbox says what a module holds, and whether it can be compiled. It gives the
// module nothing.
type Sandbox interface {
	Describer
	Compile(ctx context.Context, mod *tool.Module) error
}

// Reviewer looks at modules before they are kept.
type Reviewer struct {
	Store   *store.Store
	Sandbox Sandbox
	Trust   *trust.Rules
	Ceiling policy.Ceiling
	// Administrator is the name of the file whose publishers are the administrator's.
	Administrator string
	Now           func() time.Time
	Again         bool // look again at what was refused before, see [Reviewer.TakeSystem]
}

// Request is a module that a person wants to have.
type Request struct {
	Candidate *source.Candidate
	// Describe puts a description into it; nil: it is as it came.
	Describe func(context.Context, *tool.Module) (*tool.Module, error)
	As       string // the name under which it is offered; empty: that of its manifest
	Project  string // the workspace for which it is; empty: any
	Lock     string // the SHA-256 of the lockfile that names it; empty: none does
	System   bool   // it is the administrator's, who has approved it by putting it there
	Stamp    string // of its file, if that is looked at again
	Large    bool   // the person has let it be compiled although it is large
}

// Review is a module as it would be kept, with all that a person has to know before
// that. Nothing has been kept.
type Review struct {
	Record  store.Record
	Verdict trust.Verdict
	Was     *store.Record // what it would take the place of; nil: it is new
	Changes []Change      // since then
	code    []byte
}

// Same reports whether it is what was kept already, to the byte.
func (r *Review) Same() bool {
	return r.Was != nil && r.Was.Digest == r.Record.Digest && r.Was.Signer == r.Record.Signer
}

// Keeps reports whether what was allowed stays allowed: nothing has changed of what
// it says of itself and asks for, and the same publisher has signed it. Of a module
// that nobody has signed, the bytes have to be the same, and of one of which nothing
// tells that it is no older one. See RATIONALE, "Why is what a module may use bound to
// what it says and not to its version?"
func (r *Review) Keeps() bool {
	later := r.Record.Signer != "" && (!r.Record.Issued.IsZero() || r.Record.Base == "" && sign.ValidVersion(r.Record.Manifest.Version))
	return r.Was != nil && r.Was.Fingerprint == r.Record.Fingerprint && r.Was.Signer == r.Record.Signer &&
		(later || r.Record.System || r.Was.Digest == r.Record.Digest)
}

// Change is one thing that is different from what was approved.
type Change struct {
	What    string // in words of ours; names of tools in it are plain
	Was, Is string // texts of the module's; empty where there is nothing to compare
	Asks    bool   // it is about what the tool asks for
}

// RefusedError says why a module cannot be added.
type RefusedError struct {
	Module string
	Err    error
	Hint   string // what to do; can be empty
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s is not added: %v", e.Module, e.Err) }

func (e *RefusedError) Unwrap() error { return e.Err }

// Review checks a module in every way that there is: its bytes, its manifest, its
// signatures, what the layers permit, its name, and that it compiles. An error that
// is the module's is a *RefusedError.
func (r *Reviewer) Review(ctx context.Context, q Request) (*Review, error) {
	c := q.Candidate
	// This comes before anything of the module runs, even to ask for its manifest. Errors of a
	// signature are reported below, where more is known of the module.
	mod, _, _ := r.Module(q.As, c)
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
	name := cmp.Or(q.As, manifest.Name)
	refuse := func(err error, hint string) (*Review, error) { return nil, &RefusedError{name, err, hint} }
	records, err := r.Store.Records()
	if err != nil {
		return nil, err
	}
	var others []string
	for _, rec := range records {
		switch {
		case rec.Name == name && rec.Project == q.Project && rec.System == q.System:
			out.Was = &rec
		case rec.Project == q.Project:
			others = append(others, rec.Name)
		}
	}
	if err := CheckName(name, others); err != nil {
		return refuse(err, "choose another with --as NAME")
	}
	var seen trust.Seen
	if w := out.Was; w != nil {
		seen = trust.Seen{Signer: w.Signer, Version: w.Manifest.Version, Digest: "sha256:" + w.Came(), Issued: w.Issued}
		if w.Base != "" { // the version is the person's own word
			seen.Version = ""
		}
	}
	evidence, err := json.Marshal(c.Evidence)
	if err != nil {
		return nil, err
	}
	out.Record = store.Record{
		Name: name, Project: q.Project, Source: c.Source, Repository: c.Repository, ManifestDigest: c.ManifestDigest, Digest: digest, Bytes: int64(len(code)), Base: base,
		Manifest: manifest, Fingerprint: manifest.Fingerprint(), Evidence: evidence, Added: r.Now().UTC(),
		Lock: q.Lock, System: q.System, Stamp: q.Stamp, Large: q.Large,
	}
	if out.Verdict, err = judge(r.Trust, out.Record, c.Evidence, r.Now(), seen); err != nil {
		return refuse(err, refusedHint(err, name))
	}
	r.signed(mod, out.Verdict)
	mod.Version = manifest.Version
	if ok, why, from := r.Ceiling.PermitsAdd(mod, cmp.Or(c.Repository, PlaceOf(c.Source))); !ok && !q.System {
		if len(out.Verdict.Unread) > 0 {
			why += " (or signed in a form that this program does not read: " + out.Verdict.Unread[0] + ")"
		}
		return refuse(fmt.Errorf("%s: %s", why, from), "")
	}
	out.Record.Signer, out.Record.Namespace, out.Record.Keys, out.Record.Issued = mod.Signer, mod.Namespace, out.Verdict.Keys, out.Verdict.Issued
	out.Record.Since = out.Record.Added
	if w := out.Was; w != nil {
		out.Record.Since = w.Since
		out.Changes = changes(w, &out.Record)
		out.Record.OffTools = slices.Clone(w.OffTools)
		if w.Off == store.OffByPerson {
			out.Record.Off = w.Off
		}
		if out.Keeps() {
			out.Record.Allowed = maps.Clone(w.Allowed)
		}
	}
	if q.System { // compiled when it is first called
		return out, nil
	}
	// See RATIONALE, "Why does `tool add` compile before it asks?"
	return out, r.Sandbox.Compile(ctx, mod)
}

// Module returns the module of a candidate. It sets the signer if that can be judged without the
// manifest. as is the name of the module; empty: the last part of the source. The module is
// returned also with an error, which is about its signatures.
func (r *Reviewer) Module(as string, c *source.Candidate) (*tool.Module, trust.Verdict, error) {
	mod := tool.ModuleOf(cmp.Or(as, NameOf(c.Source)), tool.OriginAdded, c.Source, c.Code)
	asIs := trust.Subject{Repository: c.Repository, Digest: "sha256:" + mod.Digest, ManifestDigest: c.ManifestDigest, Unasked: true}
	v, err := r.Trust.Judge(asIs, c.Evidence, r.Now(), trust.Seen{})
	if err == nil {
		r.signed(mod, v)
	}
	return mod, v, err
}

// signed sets the signer of a module.
func (r *Reviewer) signed(mod *tool.Module, v trust.Verdict) {
	mod.Signer, mod.Namespace, mod.ByAdministrator = v.Signer, v.Namespace, v.Signer != "" && v.File == r.Administrator
}

// describe puts the description into a module that a person has for it, and returns
// the digest of what it was. A publisher who has signed a description of its own has
// signed something else than that.
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

// PlaceOf is the place in the network that a reference names, as modules.registries
// names it; empty for one of this machine.
func PlaceOf(ref string) string {
	if r, err := oci.ParseReference(ref); err == nil {
		return r.Repository()
	}
	if u, err := url.Parse(ref); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
		return u.Host + path.Clean("/"+u.Path)
	}
	return ""
}

// NameOf is what a module is called before it has said so: the end of its source,
// without tag and digest.
func NameOf(source string) string {
	name := source[strings.LastIndexAny(source, `/\\`)+1:]
	if i := strings.IndexAny(name, ":@"); i > 0 {
		name = name[:i]
	}
	return strings.TrimSuffix(name, ".wasm")
}

// refusedHint is what can be done about a module that is refused for its signatures.
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

// changes says what is different, the most important first.
func changes(was, is *store.Record) (out []Change) {
	if was.Signer != is.Signer {
		out = append(out, Change{What: "another signer", Was: cmp.Or(was.Signer, "nobody whom you know"), Is: cmp.Or(is.Signer, "nobody whom you know")})
	}
	if was.Repository != is.Repository {
		out = append(out, Change{What: "from another place", Was: was.Source, Is: is.Source})
	}
	if k, o := is.Manifest.Kind(), was.Manifest.Kind(); k != o {
		const native = "a module of tools"
		out = append(out, Change{What: "another kind of module", Was: cmp.Or(o, native), Is: cmp.Or(k, native)})
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
			texts = append(texts, Change{What: "new tool: " + s.Name, Is: s.Description})
			if s.Capabilities.String() != (tool.Capabilities{}).String() {
				out = append(out, Change{What: s.Name + " is new and wants more than to compute", Is: s.Capabilities.String(), Asks: true})
			}
			continue
		}
		if a, b := words(o.Run), words(s.Run); a != b {
			texts = append(texts, Change{What: s.Name + " is run in another way", Was: a, Is: b})
		}
		a, b := o.Said(), s.Said()
		if a.AsksFor != b.AsksFor {
			out = append(out, Change{What: s.Name + " asks for something else", Was: a.AsksFor, Is: b.AsksFor, Asks: true})
		}
		if a.Description != b.Description {
			texts = append(texts, Change{What: "changed description: " + s.Name, Was: a.Description, Is: b.Description})
		}
		if a, b := arguments(o), arguments(s); a != b {
			texts = append(texts, Change{What: "changed arguments: " + s.Name, Was: a, Is: b})
		}
	}
	for _, s := range was.Manifest.Tools {
		if _, gone := before[s.Name]; gone {
			texts = append(texts, Change{What: "gone: " + s.Name})
		}
	}
	if !maps.Equal(was.Manifest.Config, is.Manifest.Config) {
		texts = append(texts, Change{What: "configured in another way", Was: words(was.Manifest.Config), Is: words(is.Manifest.Config)})
	}
	return append(out, texts...)
}

// words are what a manifest says of something, as JSON.
func words[T any](v T) string {
	if text := string(tool.Marshal(v)); text != "null" {
		return text
	}
	return ""
}

// arguments are those of a tool, in words that change when anything does.
func arguments(s tool.Spec) string {
	s.Run = nil
	return s.Said().Schema
}

// Keep puts modules into the store, all or none, and takes what they replace out.
func Keep(s *store.Store, reviews ...*Review) error {
	var codes [][]byte
	for _, r := range reviews {
		codes = append(codes, r.code)
	}
	return s.Change(codes, func(records []store.Record) ([]store.Record, error) {
		for _, r := range reviews {
			i := slices.IndexFunc(records, func(o store.Record) bool { return o.Name == r.Record.Name && o.Project == r.Record.Project })
			if err := r.still(records, i); err != nil {
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

// still says why a review does not hold any more for what is kept, which is record i,
// -1 for none: it was looked at before a person was asked, which can take long, and
// what was taken back meanwhile must not come back. Why it is switched off may have
// changed: an update says that itself.
func (r *Review) still(records []store.Record, i int) error {
	switch {
	case i < 0 && r.Was == nil:
		return nil
	case i < 0:
		return fmt.Errorf("%s was removed by somebody else meanwhile; do it again", r.Record.Name)
	case r.Was == nil || records[i].Digest != r.Was.Digest || records[i].Signer != r.Was.Signer || records[i].System != r.Was.System ||
		!slices.Equal(records[i].OffTools, r.Was.OffTools) || !maps.EqualFunc(records[i].Allowed, r.Was.Allowed, tool.Allowance.Equal):
		return fmt.Errorf("%s was changed by somebody else meanwhile; do it again", r.Record.Name)
	}
	return nil
}

// Suspend says why the tools of a module are not offered for now, or with nothing that
// they are again. What the person has switched off stays so.
func Suspend(s *store.Store, r store.Record, why string) error {
	return s.Change(nil, func(records []store.Record) ([]store.Record, error) {
		for i := range records {
			if o := &records[i]; o.Name == r.Name && o.Project == r.Project && o.Off != store.OffByPerson {
				o.Off = why
			}
		}
		return records, nil
	})
}

// Wants is what a module asks for, in words of a person, and nothing where it only
// computes.
type Wants struct {
	Files   tool.Files
	Hosts   []string // those that it names
	AnyHost bool     // it wants a network and names no host
	Secrets []tool.Secret
	Exec    bool
	Store   bool // to keep things in a session
	// Sends: one of its tools reads files and reaches the network, so it could send
	// them away; or one reads, another reaches it, and both have the store.
	Sends bool
	// Inferred: it does not say what it wants, and this is what it could use.
	Inferred bool
}

// WantsOf adds up what the tools of a module ask for, each secret where it is first
// asked for.
func WantsOf(m tool.Manifest) (w Wants) {
	w.Inferred = m.Inferred
	var reads, reaches bool
	secrets := map[string]bool{} // a stranger's manifest names thousands
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
		w.Sends = w.Sends || c.Network != tool.NetworkNone && c.Files != tool.FilesNone
	}
	w.Sends = w.Sends || reads && reaches
	slices.Sort(w.Hosts)
	w.Hosts = slices.Compact(w.Hosts)
	return w
}

// Nothing reports whether it only computes.
func (w Wants) Nothing() bool {
	return w.Files == tool.FilesNone && len(w.Hosts) == 0 && !w.AnyHost && len(w.Secrets) == 0 && !w.Exec && !w.Store
}

// String says it in one line.
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
		return "it does not say what; its imports could use: " + strings.Join(w.Could(), ", ")
	}
	return strings.Join(out, "; ")
}

// Could are the things that a module could use which does not say what it wants.
func (w Wants) Could() (out []string) {
	if w.Files != tool.FilesNone {
		out = append(out, "files")
	}
	if w.AnyHost || len(w.Hosts) > 0 {
		out = append(out, "network")
	}
	return out
}

// Gift is what a yes gives a module: the hosts and secrets that it names, the files of
// the workspace if it asks for files, a store, and commands, which are asked about one by
// one.
// One that takes the place of another has the directories that this had, and where it
// names no host, its hosts. One that does not say what it wants gets nothing.
func (w Wants) Gift(work string, was *store.Record) tool.Allowance {
	if w.Inferred {
		return tool.Allowance{}
	}
	var had tool.Allowance
	switch {
	case was != nil:
		had = AllowedTo(*was)
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
	return out.With(tool.Allowance{}) // each thing once
}

// Covers says what of an allowance a module does not ask for, and so what would mean
// nothing; nil: it asks for all of it.
func (w Wants) Covers(a tool.Allowance) error {
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

// errNoModule is wrapped by the error of a name that no module has.
var errNoModule = errors.New("there is no added module")

// Find returns the record that NAME or NAME:TOOL means in a workspace: the project's
// own only if the person has none of that name, or if its lockfile names another module
// than that. Tool is the module's own name of it.
func Find(records []store.Record, name string, p *Project) (i int, inner string, err error) {
	mod, inner, _ := strings.Cut(name, ":")
	i = slices.IndexFunc(records, func(r store.Record) bool { return r.Name == mod && r.Project == "" })
	if i < 0 || p.replaces(records, records[i]) {
		i = slices.IndexFunc(records, func(r store.Record) bool { return r.Name == mod && r.Project == p.Work })
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
