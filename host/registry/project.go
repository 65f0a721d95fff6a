package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/registry/lock"
	"github.com/stockade-dev/stockade/host/registry/oci"
	"github.com/stockade-dev/stockade/host/registry/sign"
	"github.com/stockade-dev/stockade/host/registry/source"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/registry/trust"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
)

// LockName is the file in a workspace that names the modules of a project.
const LockName = "stockade.lock"

// toolsFolder is where a project keeps modules themselves.
var toolsFolder = filepath.Join(".stockade", "tools")

// Bounds on what a project brings along.
const (
	maxLockBytes    = 1 << 20
	maxProjectFiles = 64
	maxProjectBytes = admit.MaxBytes // of all files together: they are hashed at every start
)

// Project is what a workspace brings along. It is somebody else's, and none of it
// counts before a person has said yes to exactly this.
type Project struct {
	Work string
	// Lock is what stockade.lock names, LockSHA256 the digest of the file in hex. Nil:
	// there is none.
	Lock       *lock.File
	LockSHA256 string
	// Files are the modules in .stockade/tools.
	Files []ProjectFile
}

// ProjectFile is a module in .stockade/tools.
type ProjectFile struct {
	Name   string // the file's, without ".wasm"
	Source string // its path in the workspace, with slashes
	Digest string // SHA-256 in hex
	Bytes  int64
}

// ReadProject looks what a workspace brings along. Nothing is fetched or run. No link
// is followed to a file, which could lead to one that is none of the project's.
func ReadProject(work string) (*Project, error) {
	p := &Project{Work: work}
	path := filepath.Join(work, LockName)
	data, err := readRegular(path, maxLockBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if p.Lock, err = lock.Parse(path, data); err != nil {
			return nil, err
		}
		p.LockSHA256 = sum(data)
	}
	dir := filepath.Join(work, toolsFolder)
	for _, name := range []string{filepath.Dir(dir), dir} {
		switch st, err := os.Lstat(name); {
		case errors.Is(err, fs.ErrNotExist):
			return p, nil
		case err != nil:
			return nil, err
		case !st.IsDir():
			return nil, fmt.Errorf("%s is not a folder", name)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	left := int64(maxProjectBytes)
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".wasm")
		if !ok {
			continue
		}
		if len(p.Files) == maxProjectFiles {
			return nil, fmt.Errorf("%s holds more than %d modules", dir, maxProjectFiles)
		}
		st, err := e.Info()
		if err != nil {
			return nil, err
		}
		if left -= st.Size(); left < 0 {
			return nil, fmt.Errorf("the modules in %s have more than %d bytes together", dir, maxProjectBytes)
		}
		code, err := readRegular(filepath.Join(dir, e.Name()), st.Size())
		if err != nil {
			return nil, err
		}
		p.Files = append(p.Files, ProjectFile{name, filepath.ToSlash(filepath.Join(toolsFolder, e.Name())), sum(code), int64(len(code))})
	}
	return p, nil
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// readRegular reads a regular file of a bounded size, and follows no link to it.
func readRegular(path string, most int64) ([]byte, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() { // before the open, which could wait for ever
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(st, opened) {
		return nil, fmt.Errorf("%s was replaced while it was opened", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return data, err
}

// Empty reports whether the workspace brings no modules along.
func (p *Project) Empty() bool {
	return (p.Lock == nil || len(p.Lock.Modules) == 0) && len(p.Files) == 0
}

// Holds says why a record of the project does not count any more; empty if it does:
// the project is what the person has said yes to.
func (p *Project) Holds(r store.Record) string {
	if r.Lock != "" {
		if r.Lock != p.LockSHA256 {
			return LockName + " has changed since you agreed to it; `stockade tool sync` shows how, and asks"
		}
		return ""
	}
	if !slices.ContainsFunc(p.Files, func(f ProjectFile) bool { return f.Source == r.Source && f.Digest == r.Digest }) {
		return r.Source + " has changed since you agreed to it; `stockade tool sync` shows it, and asks"
	}
	return ""
}

// Agreed reports whether a person has said yes to all that the project brings along,
// as it is.
func (p *Project) Agreed(records []store.Record) bool {
	for _, m := range p.modules() {
		if !slices.ContainsFunc(records, func(r store.Record) bool {
			return r.Project == p.Work && r.Name == m.Name && r.Lock == p.LockSHA256 && r.Digest == m.Digest
		}) {
			return false
		}
	}
	for _, f := range p.Files {
		if !slices.ContainsFunc(records, func(r store.Record) bool {
			return r.Project == p.Work && r.Lock == "" && r.Source == f.Source && r.Digest == f.Digest
		}) {
			return false
		}
	}
	return true
}

func (p *Project) modules() []lock.Module {
	if p.Lock == nil {
		return nil
	}
	return p.Lock.Modules
}

// Before is the lockfile to which the person has said yes last, as far as its modules
// are still kept; nil if there is none.
func (p *Project) Before(records []store.Record) *lock.File {
	var out *lock.File
	for _, r := range records {
		if r.Project != p.Work || r.Lock == "" {
			continue
		}
		if out == nil {
			out = &lock.File{}
		}
		m := Locked(r)
		i := slices.IndexFunc(p.modules(), func(now lock.Module) bool { return now.Name == m.Name })
		if m.Signer == "" && i >= 0 { // the person does not know the publisher: that is no difference
			m.Signer, m.Keys = p.Lock.Modules[i].Signer, p.Lock.Modules[i].Keys
		}
		out.Modules = append(out.Modules, m)
	}
	return out
}

// Locked is the entry of a lockfile for a module.
func Locked(r store.Record) lock.Module {
	const most = 4 << 10 // of what it wants, in words
	return lock.Module{
		Name: r.Name, Version: r.Manifest.Version, Source: r.Source, Manifest: r.ManifestDigest, Digest: r.Digest, Bytes: r.Bytes,
		Wants: fmt.Sprintf("%.*s", most, WantsOf(r.Manifest)), Fingerprint: r.Fingerprint,
		Signer: r.Signer, Keys: r.Keys,
	}
}

// Portable is the source of a module as a lockfile can name it: pinned, and there for
// everybody who has the project.
func Portable(r store.Record, work string) (string, error) {
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

// CheckLocked holds a module that was fetched against the entry of the lockfile which
// names it: they agree in everything. Whose key signed it is for each person to say,
// and so a key that the person does not know counts for nothing here; of one that the
// person knows, the signature has to be there.
func CheckLocked(m lock.Module, r *Review, rules *trust.Rules) error {
	is := Locked(r.Record)
	is.Source = m.Source // another name of the same bytes
	if is.Manifest == "" || m.Manifest == "" {
		is.Manifest = m.Manifest // of a copy that was kept outside of a registry
	}
	if is.Signer == "" && !rules.Knows(m.Keys...) || is.Signer != "" && slices.Equal(is.Keys, m.Keys) {
		is.Signer, is.Keys = m.Signer, m.Keys
	}
	for _, part := range []struct{ what, want, is string }{
		{"module", m.Digest, is.Digest}, {"manifest", m.Manifest, is.Manifest}, {"version", m.Version, is.Version}, {"signer", m.Signer, is.Signer},
		{"keys", strings.Join(m.Keys, ","), strings.Join(is.Keys, ",")}, {"wants", m.Wants, is.Wants},
		{"description", m.Fingerprint.Description, is.Fingerprint.Description}, {"schema", m.Fingerprint.Schema, is.Fingerprint.Schema}, {"needs", m.Fingerprint.Needs, is.Fingerprint.Needs}, {"size", fmt.Sprint(m.Bytes), fmt.Sprint(is.Bytes)},
	} {
		if part.want != part.is {
			return fmt.Errorf("%s: its %s is %.80q, and %s says %.80q", m.Name, part.what, part.is, LockName, part.want)
		}
	}
	return nil
}

// SHA256 is the digest of a lockfile, in hex.
func SHA256(data []byte) string { return sum(data) }

// AgreeTo makes the records of a project those of a lockfile that the person has
// written, out of records that the person has. What the file names otherwise stays as
// it was agreed to.
func AgreeTo(records, chosen []store.Record, now *lock.File, lockSHA256, work string) []store.Record {
	records = slices.DeleteFunc(records, func(r store.Record) bool {
		return r.Project == work && r.Lock != "" && !slices.ContainsFunc(now.Modules, func(m lock.Module) bool { return m.Name == r.Name && m.Digest == r.Digest })
	})
	for i := range records {
		if records[i].Project == work && records[i].Lock != "" {
			records[i].Lock = lockSHA256
		}
	}
	for _, r := range chosen {
		if !slices.ContainsFunc(records, func(o store.Record) bool { return o.Project == work && o.Lock != "" && o.Name == r.Name }) {
			r.Project, r.Lock, r.Allowed, r.Off, r.OffTools = work, lockSHA256, nil, "", nil
			records = append(records, r)
		}
	}
	return records
}

// KeepProject keeps what a person has agreed to of a project, in the place of whatever
// was kept for it before.
func KeepProject(s *store.Store, p *Project, reviews []*Review) error {
	var codes [][]byte
	for _, r := range reviews {
		codes = append(codes, r.code)
	}
	return s.Change(codes, func(records []store.Record) ([]store.Record, error) {
		for _, r := range reviews {
			i := slices.IndexFunc(records, func(o store.Record) bool { return o.Name == r.Record.Name && o.Project == p.Work })
			if err := r.still(records, i); err != nil {
				return nil, err
			}
		}
		records = slices.DeleteFunc(records, func(r store.Record) bool { return r.Project == p.Work })
		for _, r := range reviews {
			if slices.ContainsFunc(records, func(o store.Record) bool { return o.Project == p.Work && o.Name == r.Record.Name }) {
				return nil, fmt.Errorf("the project names two modules %s", r.Record.Name)
			}
			records = append(records, r.Record)
		}
		return records, nil
	})
}

// Stored is a module that a lockfile names, with its signatures, where the store has
// it already, from the same repository: to this the signatures are bound.
func Stored(s *store.Store, m lock.Module) (*source.Candidate, bool) {
	records, err := s.Records()
	if err != nil {
		return nil, false
	}
	repository := ""
	if strings.HasPrefix(m.Source, oci.Scheme) {
		repository = PlaceOf(m.Source)
	}
	for _, r := range records {
		if r.Digest != m.Digest || r.ManifestDigest != m.Manifest || r.Repository != repository {
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

// Verify holds the signatures of a record against what is trusted now: a key that was
// revoked since, or whose publisher is gone.
func Verify(rules *trust.Rules, r store.Record) error {
	v, err := verdict(rules, r)
	if err == nil && v.Signer != r.Signer {
		err = fmt.Errorf("%q has signed it by what you trust now, and %q when it was added", v.Signer, r.Signer)
	}
	return err
}

// verdict is who has signed a module by what is trusted now.
func verdict(rules *trust.Rules, r store.Record) (trust.Verdict, error) {
	var evidence sign.Evidence
	if len(r.Evidence) > 0 {
		if err := json.Unmarshal(r.Evidence, &evidence); err != nil {
			return trust.Verdict{}, fmt.Errorf("its signatures cannot be read: %w", err)
		}
	}
	return rules.Judge(subject(r), evidence, r.Added, trust.Seen{})
}

// subject is what a signature over a module has to be about.
func subject(r store.Record) trust.Subject {
	return trust.Subject{
		Repository: r.Repository, Name: r.Manifest.Name, Version: r.Manifest.Version, Digest: "sha256:" + r.Digest, ManifestDigest: r.ManifestDigest,
		Fingerprint: sign.Fingerprint(r.Fingerprint),
	}
}
