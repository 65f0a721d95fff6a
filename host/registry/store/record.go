package store

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/visible"
)

// Record is a module that a person has added. It holds everything that was approved, so
// that a start reads one file and no module.
type Record struct {
	// Name is the prefix of its tools, which are offered as NAME_tool. No two records of
	// the same project have the same name.
	Name string `json:"name"`
	// Project is the workspace in which it counts, an absolute path; empty: all workspaces.
	Project string `json:"project,omitempty"`
	// LockSHA256 is the SHA-256 of the stockade.lock that was approved with the module, in
	// hex; empty: no lockfile names it. System is set if it is in the administrator's folder.
	LockSHA256 string `json:"lock,omitempty"`
	System     bool   `json:"system,omitempty"`
	Stamp      string `json:"stamp,omitempty"` // stamp of the administrator's file; changes with the file
	// Source is a reference with which a person can fetch it again: a path, an https://
	// address, or oci://HOST/REPOSITORY:TAG. Repository is HOST/REPOSITORY, to which
	// signatures are bound; empty: it is from no registry.
	Source     string `json:"source"`
	Repository string `json:"repository,omitempty"`
	// ManifestDigest is the digest of the OCI manifest, "sha256:HEX"; empty: there was none.
	ManifestDigest string `json:"manifest_digest,omitempty"`
	// Digest is the SHA-256 of the module in hex, and Bytes its size.
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
	// BaseDigest is the SHA-256 in hex of the module before a person's description was
	// added; signatures are about these bytes. Empty: no description was added.
	BaseDigest string `json:"base,omitempty"`
	// Manifest is the module's manifest in the form that was approved. tool.ParseManifest
	// checked it when the record came into the store.
	Manifest tool.Manifest `json:"manifest"`
	// Fingerprint is the fingerprint of Manifest. If it changes, or Signer does, the module is
	// switched off until a person approves it again.
	Fingerprint tool.Fingerprint `json:"fingerprint"`
	// Signer is the publisher whose signature was verified, Namespace the namespace in which
	// it may publish, and Keys the IDs of its keys. Empty: no known publisher has signed it.
	Signer    string   `json:"signer,omitempty"`
	Namespace string   `json:"namespace,omitempty"`
	Keys      []string `json:"keys,omitempty"`
	// Issued is the time of the signature: an older one is refused later; zero: unknown.
	Issued time.Time `json:"issued,omitzero"`
	// Evidence is the signatures as they came, at most 1 MiB of JSON, so that they can be
	// verified again, offline.
	Evidence json.RawMessage `json:"evidence,omitempty"`

	// Added is the time when it was approved, and FirstAdded the time when a module of
	// this name first was. If two tools would have the same name, the module that was
	// added first keeps it.
	Added      time.Time `json:"added"`
	FirstAdded time.Time `json:"since,omitzero"`
	AllowLarge bool      `json:"large,omitempty"` // the person permits compiling it although it is large
	// OffReason is the reason why none of its tools is offered; empty: they are offered, apart
	// from OffTools, which a person has switched off (by their names in the module).
	OffReason string   `json:"off,omitempty"`
	OffTools  []string `json:"off_tools,omitempty"`
	// Allowances holds what its tools may use, by the name of the tool in the module. The
	// name "" stands for all tools.
	Allowances map[string]tool.Allowance `json:"allowed,omitempty"`
}

// OriginalDigest returns the SHA-256 in hex of the module as it came.
func (r *Record) OriginalDigest() string { return cmp.Or(r.BaseDigest, r.Digest) }

// OffByPerson is the OffReason of a module that a person has switched off.
const OffByPerson = "switched off"

// Limits on a record; more is an error. Strangers provide most of its content, which people
// see.
const (
	maxTextBytes     = 4 << 10
	maxEvidenceBytes = 1 << 20
	maxKeys          = 16
	maxTools         = 128
	maxAllowed       = 64 // number of entries of one kind in the allowance of one tool
)

// check makes the checks that are fast enough for each start. Its errors continue a sentence
// that begins with the name of the module.
func (r *Record) check() error {
	if !tool.ValidName(r.Name) {
		return errors.New("whose name is not 1 to 64 letters, digits, '_' or '-'")
	}
	if r.Project != "" && !isPath(r.Project) {
		return fmt.Errorf("whose project %.80q is not an absolute path", r.Project)
	}
	if r.Source == "" {
		return errors.New("which has no source")
	}
	for _, text := range slices.Concat([]string{r.Source, r.Repository, r.Signer, r.Namespace, r.OffReason, r.Stamp}, r.Keys) {
		if !isVisibleText(text) {
			return fmt.Errorf("which holds a text that is too long or does not show as what it is: %.80q", text)
		}
	}
	if hex, ok := strings.CutPrefix(r.ManifestDigest, "sha256:"); r.ManifestDigest != "" && (!ok || !isHash(hex)) {
		return fmt.Errorf("whose manifest digest %.80q is not sha256:HEX", r.ManifestDigest)
	}
	if r.LockSHA256 != "" && !isHash(r.LockSHA256) {
		return fmt.Errorf("whose lockfile %.80q is not a SHA-256 in hex", r.LockSHA256)
	}
	for _, sum := range []string{r.Digest, r.OriginalDigest(), r.Fingerprint.Description, r.Fingerprint.Schema, r.Fingerprint.Needs} {
		if !isHash(sum) {
			return fmt.Errorf("in which %.80q is not a SHA-256 in hex", sum)
		}
	}
	switch {
	case r.Bytes < 1:
		return fmt.Errorf("whose size of %d bytes is not valid", r.Bytes)
	case (r.Signer == "") != (len(r.Keys) == 0) || r.Signer == "" && r.Namespace != "":
		return errors.New("whose signer does not go with its keys and its namespace")
	case len(r.Keys) > maxKeys:
		return fmt.Errorf("which %d keys have signed, more than the limit of %d", len(r.Keys), maxKeys)
	case len(r.Evidence) > maxEvidenceBytes:
		return fmt.Errorf("whose signatures have %d bytes, more than the limit of %d", len(r.Evidence), maxEvidenceBytes)
	case len(r.OffTools) > maxTools || len(r.Allowances) > maxTools+1 || !all(r.OffTools, tool.ValidName):
		return errors.New("whose list of tools that are off, or of allowances, is not valid")
	}
	for name, a := range r.Allowances {
		if name != "" && !tool.ValidName(name) {
			return fmt.Errorf("which allows something to %.80q, and that is no tool", name)
		}
		if !all(a.Read, isPath) || !all(a.Write, isPath) || !all(a.Hosts, isVisibleText) || !all(a.Secrets, tool.ValidSecretName) ||
			max(len(a.Read), len(a.Write), len(a.Hosts), len(a.Secrets)) > maxAllowed {
			return fmt.Errorf("whose allowance for the tool %q is not valid: directories are absolute and clean, and each list has at most %d entries", name, maxAllowed)
		}
	}
	return nil
}

// approvalKey returns a text that changes with each part of a record that checkManifest and
// checkSize check.
func (r *Record) approvalKey() string {
	manifest, _ := json.Marshal(r.Manifest) // never fails: it was checked before
	return fmt.Sprint(r.Digest, r.Bytes, r.Fingerprint, string(manifest))
}

// checkManifest makes the slow checks: the manifest must be valid, and have the fingerprint
// that was approved.
func (r *Record) checkManifest() error {
	data, err := json.Marshal(r.Manifest)
	if err != nil {
		return fmt.Errorf("module %q: manifest: %w", r.Name, err)
	}
	m, err := tool.ParseManifest(data)
	if err != nil {
		return fmt.Errorf("module %q: %w", r.Name, err)
	}
	if m.Fingerprint() != r.Fingerprint {
		return fmt.Errorf("module %q: its manifest is not the one that was approved; %s", r.Name, r.readdHint())
	}
	return nil
}

// readdHint returns a hint for adding the module again. It never shows the source of a
// project's module as a command, because that is a stranger's text.
func (r *Record) readdHint() string {
	if r.Project != "" {
		return "get it again: stockade tool remove " + r.Name + ", and then stockade tool sync"
	}
	if r.BaseDigest != "" {
		return "add it again: stockade tool add " + r.Source + " --describe FILE.toml"
	}
	return "add it again: stockade tool add " + r.Source
}

func all(list []string, ok func(string) bool) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return !ok(s) })
}

// isPath reports whether s is an absolute, clean path in UTF-8. JSON would change invalid
// bytes, and the path would name another file.
func isPath(s string) bool {
	return filepath.IsAbs(s) && filepath.Clean(s) == s && len(s) <= maxTextBytes && utf8.ValidString(s) && !strings.Contains(s, "\x00")
}

// isVisibleText reports whether s is one line of visible characters, of at most 4 KiB.
func isVisibleText(s string) bool {
	return len(s) <= maxTextBytes && visible.IsLine(s)
}
