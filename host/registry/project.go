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

// LockName is the name of the file in a workspace that lists the modules of the project.
const LockName = "stockade.lock"

// toolsFolder is the folder of a workspace with modules that belong to the project.
var toolsFolder = filepath.Join(".stockade", "tools")

// Limits on the modules of a project; more are an error.
const (
	maxLockBytes    = 1 << 20
	maxProjectFiles = 64
	maxProjectBytes = admit.MaxBytes // size of all files in the folder together: they are hashed at every start
)

// Project holds the modules that a workspace brings along. They come from somebody else, and
// none is used before a person has said yes to all of them in exactly this form.
type Project struct {
	Workspace string
	// Lock is the content of stockade.lock, and LockSHA256 the SHA-256 of the file in hex.
	// They are nil and empty if there is no such file.
	Lock       *lock.File
	LockSHA256 string
	Files      []ProjectFile // the modules in .stockade/tools
}

// ProjectFile is a module in .stockade/tools.
type ProjectFile struct {
	Name   string // name of the file without ".wasm"
	Source string // path of the file in the workspace, with slashes
	Digest string // SHA-256 in hex
	Bytes  int64
}

// ReadProject returns the modules that a workspace brings along. It fetches and runs
// nothing. It follows no link to a file, as the link could lead out of the project.
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

// readRegular reads a regular file of at most maxBytes bytes. It refuses a link.
func readRegular(path string, maxBytes int64) ([]byte, error) {
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
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err == nil && int64(len(data)) > maxBytes {
		err = fmt.Errorf("%s has more than %d bytes", path, maxBytes)
	}
	return data, err
}

// ReadManifest reads the manifest in a module of .stockade/tools without running the
// module. ok is false if the module has no manifest section: it can be asked for a
// manifest only after the yes.
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

// WhyStale returns the reason why a record of the project is no longer valid: the project has
// changed since the person agreed to it. Empty: the record is valid.
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

// replaces reports whether a module of the lockfile, which the store has, is used in the place
// of own, a module that the person added under the same name. The administrator's modules are
// never replaced.
func (p *Project) replaces(records []store.Record, own store.Record) bool {
	named := slices.ContainsFunc(lock.Modules(p.Lock), func(m lock.Module) bool { return m.Name == own.Name })
	return named && own.Project == "" && !own.System && slices.ContainsFunc(records, func(r store.Record) bool {
		return r.Project == p.Workspace && r.LockSHA256 != "" && r.Name == own.Name && r.Digest != own.Digest
	})
}

// IsAgreed reports whether a person has said yes to every module of the project as it is now.
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

// SaveProject stores the modules of a project that a person has agreed to. It replaces
// all records that the project had before.
func SaveProject(s *store.Store, p *Project, reviews []*Review) error {
	return s.Change(codesOf(reviews), func(records []store.Record) ([]store.Record, error) {
		for _, r := range reviews {
			if _, err := r.find(records); err != nil {
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

// Verify judges the signatures of a record by the present rules of trust. It is an error if
// the signer is not the recorded one any more: a key was revoked, or its publisher is gone.
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

// checkBase checks that the stored module is the signed module with a description added. If a
// policy of somebody else than the user decides by signers, the record alone is no proof.
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

// verdict judges the stored signatures of a record by the present rules of trust.
func verdict(rules *trust.Rules, r store.Record) (trust.Verdict, error) {
	var evidence sign.Evidence
	if len(r.Evidence) > 0 {
		if err := json.Unmarshal(r.Evidence, &evidence); err != nil {
			return trust.Verdict{}, fmt.Errorf("its signatures cannot be read: %w", err)
		}
	}
	return judge(rules, r, evidence, r.Added, trust.Previous{})
}

// judge returns the signer of a module. A module with a description is refused if it is
// revoked in either form: with the description, or without.
func judge(rules *trust.Rules, r store.Record, e sign.Evidence, now time.Time, seen trust.Previous) (trust.Verdict, error) {
	if r.BaseDigest != "" {
		if _, err := rules.Judge(trust.Subject{Digest: "sha256:" + r.Digest}, sign.Evidence{}, now, trust.Previous{}); err != nil {
			return trust.Verdict{}, err
		}
	}
	return rules.Judge(subject(r), e, now, seen)
}

// subject returns the facts about a module with which its signatures are compared.
func subject(r store.Record) trust.Subject {
	if r.BaseDigest != "" { // the signed form has no name of its own
		return trust.Subject{Repository: r.Repository, Digest: "sha256:" + r.BaseDigest, ManifestDigest: r.ManifestDigest}
	}
	return trust.Subject{
		Repository: r.Repository, Name: r.Manifest.Name, Version: r.Manifest.Version, Digest: "sha256:" + r.Digest, ManifestDigest: r.ManifestDigest,
		Fingerprint: sign.Fingerprint(r.Fingerprint),
	}
}
