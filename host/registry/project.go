package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/internal/regular"
	"github.com/stockade-dev/stockade/host/registry/lock"
	"github.com/stockade-dev/stockade/host/registry/sign"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/registry/trust"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
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
	Workspace string
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
	p := &Project{Workspace: work}
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
		p.LockSHA256 = tool.SHA256(data)
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
		p.Files = append(p.Files, ProjectFile{name, filepath.ToSlash(filepath.Join(toolsFolder, e.Name())), tool.SHA256(code), int64(len(code))})
	}
	return p, nil
}

// readRegular reads a regular file of a bounded size, and follows no link to it.
func readRegular(path string, most int64) ([]byte, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	f, opened, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !os.SameFile(st, opened) {
		return nil, fmt.Errorf("%s is not a regular file: it may be no link either", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return data, err
}

// ReadManifest is what a module in .stockade/tools says of itself, read without running it. Ok
// is false for one that says it only when it is asked, after the yes.
func (p *Project) ReadManifest(f ProjectFile) (m tool.Manifest, ok bool) {
	code, err := readRegular(filepath.Join(p.Workspace, filepath.FromSlash(f.Source)), f.Bytes)
	if err != nil || tool.SHA256(code) != f.Digest {
		return m, false
	}
	decoded, err := wasm.Decode(code)
	if err != nil {
		return m, false
	}
	section, ok := wasm.CustomSection(decoded, wasm.ManifestSection)
	if !ok {
		return m, false
	}
	m, err = tool.ParseManifest(section)
	return m, err == nil
}

// Empty reports whether the workspace brings no modules along.
func (p *Project) Empty() bool {
	return len(lock.Modules(p.Lock)) == 0 && len(p.Files) == 0
}

// WhyStale says why a record of the project does not count any more; empty if it does:
// the project is what the person has said yes to.
func (p *Project) WhyStale(r store.Record) string {
	if r.LockSHA256 != "" {
		if r.LockSHA256 != p.LockSHA256 {
			return LockName + " has changed since you agreed to it; `stockade tool sync` shows how, and asks"
		}
		return ""
	}
	if !slices.ContainsFunc(p.Files, func(f ProjectFile) bool { return f.Source == r.Source && f.Digest == r.Digest }) {
		return r.Source + " has changed since you agreed to it; `stockade tool sync` shows it, and asks"
	}
	return ""
}

// replaces reports whether a module of the lockfile, which is here, takes the place of a
// person's own module of the same name. The administrator's modules are not a person's own.
func (p *Project) replaces(records []store.Record, own store.Record) bool {
	named := slices.ContainsFunc(lock.Modules(p.Lock), func(m lock.Module) bool { return m.Name == own.Name })
	return named && own.Project == "" && !own.System && slices.ContainsFunc(records, func(r store.Record) bool {
		return r.Project == p.Workspace && r.LockSHA256 != "" && r.Name == own.Name && r.Digest != own.Digest
	})
}

// IsAgreed reports whether a person has said yes to all that the project brings along,
// as it is.
func (p *Project) IsAgreed(records []store.Record) bool {
	for _, m := range lock.Modules(p.Lock) {
		if !slices.ContainsFunc(records, func(r store.Record) bool {
			return r.Project == p.Workspace && r.Name == m.Name && r.LockSHA256 == p.LockSHA256 && r.Digest == m.Digest
		}) {
			return false
		}
	}
	for _, f := range p.Files {
		if !slices.ContainsFunc(records, func(r store.Record) bool {
			return r.Project == p.Workspace && r.LockSHA256 == "" && r.Source == f.Source && r.Digest == f.Digest
		}) {
			return false
		}
	}
	return true
}

// SaveProject keeps what a person has agreed to of a project, in the place of whatever
// was kept for it before.
func SaveProject(s *store.Store, p *Project, reviews []*Review) error {
	var codes [][]byte
	for _, r := range reviews {
		codes = append(codes, r.code)
	}
	return s.Change(codes, func(records []store.Record) ([]store.Record, error) {
		for _, r := range reviews {
			i := slices.IndexFunc(records, func(o store.Record) bool { return o.Name == r.Record.Name && o.Project == p.Workspace })
			if err := r.checkUnchanged(records, i); err != nil {
				return nil, err
			}
		}
		records = slices.DeleteFunc(records, func(r store.Record) bool { return r.Project == p.Workspace })
		for _, r := range reviews {
			if slices.ContainsFunc(records, func(o store.Record) bool { return o.Project == p.Workspace && o.Name == r.Record.Name }) {
				return nil, fmt.Errorf("the project names two modules %s", r.Record.Name)
			}
			records = append(records, r.Record)
		}
		return records, nil
	})
}

// Verify holds the signatures of a record against what is trusted now: a key that was
// revoked since, or whose publisher is gone.
func Verify(s *store.Store, rules *trust.Rules, r store.Record) error {
	v, err := verdict(rules, r)
	if err == nil {
		err = checkBase(s, r)
	}
	if err == nil && v.Signer != r.Signer {
		err = fmt.Errorf("%q has signed it by what you trust now, and %q when it was added", v.Signer, r.Signer)
	}
	return err
}

// checkBase finds out whether what is kept is the module that was signed and a
// description. The record alone is not enough, where somebody else than the user asks
// who has signed.
func checkBase(s *store.Store, r store.Record) error {
	if r.BaseDigest == "" || r.Signer == "" {
		return nil
	}
	code, err := s.Module(r).Read()
	if err != nil {
		return err
	}
	m, err := wasm.Decode(code)
	if err == nil && tool.SHA256(wasm.WithoutCustom(m, wasm.ManifestSection)) != r.BaseDigest {
		err = errors.New("without its description it is not the module that was signed")
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
	return judge(rules, r, evidence, r.Added, trust.Previous{})
}

// judge says who has signed a module. One that has a description is revoked as it came,
// and as it is.
func judge(rules *trust.Rules, r store.Record, e sign.Evidence, now time.Time, seen trust.Previous) (trust.Verdict, error) {
	if r.BaseDigest != "" {
		if _, err := rules.Judge(trust.Subject{Digest: "sha256:" + r.Digest}, sign.Evidence{}, now, trust.Previous{}); err != nil {
			return trust.Verdict{}, err
		}
	}
	return rules.Judge(subject(r), e, now, seen)
}

// subject is what a signature over a module has to be about.
func subject(r store.Record) trust.Subject {
	if r.BaseDigest != "" { // as it came it does not say what it is called
		return trust.Subject{Repository: r.Repository, Digest: "sha256:" + r.BaseDigest, ManifestDigest: r.ManifestDigest}
	}
	return trust.Subject{
		Repository: r.Repository, Name: r.Manifest.Name, Version: r.Manifest.Version, Digest: "sha256:" + r.Digest, ManifestDigest: r.ManifestDigest,
		Fingerprint: sign.Fingerprint(r.Fingerprint),
	}
}
