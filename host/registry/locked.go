package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/registry/lock"
	"github.com/stockade-dev/stockade/host/registry/oci"
	"github.com/stockade-dev/stockade/host/registry/source"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/registry/trust"
	"github.com/stockade-dev/stockade/host/tool"
)

func lockEntry(r store.Record) lock.Module {
	const maxWantsBytes = 4 << 10
	return lock.Module{
		Name: r.Name, Version: r.Manifest.Version, Source: r.Source, ManifestDigest: r.ManifestDigest, Digest: r.Digest, Bytes: r.Bytes,
		Wants: fmt.Sprintf("%.*s", maxWantsBytes, WantsOf(r.Manifest)), Fingerprint: r.Fingerprint,
		Signer: r.Signer, Keys: r.Keys,
	}
}

// ErrDescribed is returned for a module to which the person has added a description: nobody
// else can fetch it in this form.
var ErrDescribed = errors.New("it has a description of yours, which others cannot fetch")

// PinnedLockEntry returns the entry for one of the person's modules in a lockfile. Its source
// is pinned by a digest where possible. It is an error if other people who have the project
// cannot fetch the module.
func PinnedLockEntry(r store.Record, work string) (m lock.Module, err error) {
	if r.BaseDigest != "" {
		return m, ErrDescribed
	}
	m = lockEntry(r)
	if r.LockSHA256 == "" { // an entry of the lockfile has its source already
		m.Source, err = portable(r, work)
	}
	return m, err
}

// portable returns a source of the module that works for everybody who has the workspace work.
// It is an error if there is none.
func portable(r store.Record, work string) (string, error) {
	switch {
	case strings.HasPrefix(r.Source, "oci://"):
		ref, _, _ := strings.Cut(strings.TrimPrefix(r.Source, "oci://"), "@")
		if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
			ref = ref[:i]
		}
		return "oci://" + ref + "@" + r.ManifestDigest, nil
	case strings.HasPrefix(r.Source, "https://"):
		return r.Source, nil
	}
	rel, err := filepath.Rel(work, r.Source)
	if filepath.IsAbs(r.Source) && err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel), nil
	}
	return "", fmt.Errorf("%s came from %s, which others do not have; push it to a registry, or keep it in the project", r.Name, r.Source)
}

// WriteLock writes the lockfile f of a workspace. chosen are the records whose entries are
// new. The person agrees to the file by writing it, so nobody is asked here.
func WriteLock(s *store.Store, work string, f *lock.File, chosen []store.Record) error {
	data := lock.Format(f)
	f, err := lock.Parse(LockName, data)
	if err != nil { // a file that nobody could read is not written
		return err
	}
	err = s.Change(nil, func(records []store.Record) ([]store.Record, error) {
		return agreeTo(records, chosen, f, tool.SHA256(data), work), nil
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(work, LockName), data, 0o644)
}

// agreeTo returns the records of the store after the person has written the lockfile now: the
// person has agreed to the entries of the chosen records. Other entries stay approved if they
// were, and records of the project without an entry are dropped.
func agreeTo(records, chosen []store.Record, now *lock.File, lockSHA256, work string) []store.Record {
	records = slices.DeleteFunc(records, func(r store.Record) bool {
		return r.Project == work && r.LockSHA256 != "" && !slices.ContainsFunc(now.Modules, func(m lock.Module) bool { return m.Name == r.Name && m.Digest == r.Digest })
	})
	for _, r := range chosen {
		if !slices.ContainsFunc(records, func(o store.Record) bool { return o.Project == work && o.LockSHA256 != "" && o.Name == r.Name }) {
			r.Project, r.LockSHA256, r.Allowances, r.OffReason, r.OffTools = work, lockSHA256, nil, "", nil
			records = append(records, r)
		}
	}
	for i := range records {
		if r := &records[i]; r.Project == work && r.LockSHA256 != "" {
			at := slices.IndexFunc(now.Modules, func(m lock.Module) bool { return m.Name == r.Name })
			r.LockSHA256, r.Source = lockSHA256, now.Modules[at].Source // as in its entry
		}
	}
	return records
}

// AgreedLock returns the lockfile that the person agreed to last, with those of its modules
// that the store still has; nil if it has none.
func (p *Project) AgreedLock(records []store.Record) *lock.File {
	var out *lock.File
	for _, r := range records {
		if r.Project != p.Workspace || r.LockSHA256 == "" {
			continue
		}
		if out == nil {
			out = &lock.File{}
		}
		m := lockEntry(r)
		i := slices.IndexFunc(lock.Modules(p.Lock), func(now lock.Module) bool { return now.Name == m.Name })
		if m.Signer == "" && i >= 0 { // an unknown publisher is no difference
			m.Signer, m.Keys = p.Lock.Modules[i].Signer, p.Lock.Modules[i].Keys
		}
		out.Modules = append(out.Modules, m)
	}
	return out
}

// LockProblems describes the problems of the lockfile: it is not in the canonical form, or the
// person has not agreed to its modules.
func (p *Project) LockProblems(records []store.Record) (out []string) {
	if p.Lock == nil {
		return nil
	}
	path := filepath.Join(p.Workspace, LockName)
	if tool.SHA256(lock.Format(p.Lock)) != p.LockSHA256 {
		out = append(out, path+" is not in the form in which `stockade tool lock` writes it")
	}
	if !p.IsAgreed(records) {
		out = append(out, path+" names modules to which you have not agreed as they are; `stockade tool sync` shows them")
	}
	return out
}

// marks replaces the characters that a publisher's name can have, and a module's name cannot.
var marks = strings.NewReplacer(".", "_", "@", "_", "+", "_")

// CheckClaims checks the signers in a lockfile against the publishers that the person knows,
// before anything is fetched: an entry with the name of such a publisher, or with a similar
// name, must have a key of that publisher.
func CheckClaims(f *lock.File, rules *trust.Rules) error {
	if f == nil {
		return nil
	}
	for _, m := range f.Modules {
		if m.Signer == "" {
			continue
		}
		if !trust.ValidName(m.Signer) {
			return fmt.Errorf("%s: %s gives it the signer %.80q, and no publisher can have that name", m.Name, LockName, m.Signer)
		}
		owners := rules.Owners(m.Keys...)
		for _, name := range rules.Names() {
			if skeleton(marks.Replace(name)) == skeleton(marks.Replace(m.Signer)) && !slices.Contains(owners, name) {
				return fmt.Errorf("%s: %s gives it the signer %q, and names none of the keys that you know of %s", m.Name, LockName, m.Signer, name)
			}
		}
	}
	return nil
}

// CheckLocked returns an error if a fetched module differs from its entry m in the lockfile.
// Each person decides which keys to trust. So keys that the person does not know are ignored,
// but if the person knows one of the entry's keys, these keys must have signed the module.
func CheckLocked(m lock.Module, r *Review, rules *trust.Rules) error {
	is := lockEntry(r.Record)
	is.Source = m.Source // a source is only a name of the bytes
	if is.ManifestDigest == "" || m.ManifestDigest == "" {
		is.ManifestDigest = m.ManifestDigest // a copy outside of a registry has none
	}
	if known := slices.DeleteFunc(slices.Clone(m.Keys), func(id string) bool { return !rules.KnowsKey(id) }); slices.Equal(is.Keys, known) {
		is.Signer, is.Keys = m.Signer, m.Keys
	}
	for _, part := range []struct{ what, want, is string }{
		{"module", m.Digest, is.Digest}, {"manifest", m.ManifestDigest, is.ManifestDigest}, {"version", m.Version, is.Version}, {"signer", m.Signer, is.Signer},
		{"keys", strings.Join(m.Keys, ","), strings.Join(is.Keys, ",")}, {"wants", m.Wants, is.Wants},
		{"description", m.Fingerprint.Description, is.Fingerprint.Description}, {"schema", m.Fingerprint.Schema, is.Fingerprint.Schema}, {"needs", m.Fingerprint.Needs, is.Fingerprint.Needs}, {"size", fmt.Sprint(m.Bytes), fmt.Sprint(is.Bytes)},
	} {
		if part.want != part.is {
			return fmt.Errorf("%s: its %s is %.80q, and %s says %.80q", m.Name, part.what, part.is, LockName, part.want)
		}
	}
	return nil
}

// CandidateFromStore returns the module of a lockfile entry, with its signatures; false: the
// store does not have it from the same repository, to which its signatures are bound.
func CandidateFromStore(s *store.Store, m lock.Module) (*source.Candidate, bool) {
	records, err := s.Records()
	if err != nil {
		return nil, false
	}
	repository := ""
	if strings.HasPrefix(m.Source, oci.Scheme) {
		repository = PlaceOf(m.Source)
	}
	for _, r := range records {
		if r.Digest != m.Digest || r.BaseDigest != "" || r.ManifestDigest != m.ManifestDigest || r.Repository != repository {
			continue
		}
		code, err := s.Module(r).Read()
		c := &source.Candidate{Code: code, Digest: r.Digest, Source: m.Source, Repository: r.Repository, ManifestDigest: r.ManifestDigest}
		if err == nil && json.Unmarshal(r.Evidence, &c.Evidence) == nil {
			return c, true
		}
	}
	return nil, false
}
