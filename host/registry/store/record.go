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

// Record is a module that a person has added. What it was approved with is all in
// it, so that a start reads one file and no module.
type Record struct {
	// Name is the one under which its tools are offered, as NAME_tool; no two
	// records of the same project have the same.
	Name string `json:"name"`
	// Project is the workspace in which it counts, absolute; empty: in any.
	Project string `json:"project,omitempty"`
	// LockSHA256 is the SHA-256 of the stockade.lock that was approved with it, in hex; empty:
	// it is in none. System: it is in the administrator's folder.
	LockSHA256 string `json:"lock,omitempty"`
	System     bool   `json:"system,omitempty"`
	Stamp      string `json:"stamp,omitempty"` // of the administrator's file, changes when that does
	// Source is where it came from, as a person would name it again: a path, an
	// https:// address, or oci://HOST/REPOSITORY:TAG. Repository is what signatures
	// are bound to: HOST/REPOSITORY; empty where there is none.
	Source     string `json:"source"`
	Repository string `json:"repository,omitempty"`
	// ManifestDigest is that of the OCI manifest, "sha256:HEX"; empty: there was none.
	ManifestDigest string `json:"manifest_digest,omitempty"`
	// Digest is the SHA-256 of the module in hex, Bytes its size.
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
	// BaseDigest is the SHA-256 in hex of the module as it came, where a person's description
	// was put into it; signatures are about that. Empty: it is as it came.
	BaseDigest string `json:"base,omitempty"`
	// Manifest is what the module said of itself, as it was approved, checked by
	// tool.ParseManifest when the record came into the store.
	Manifest tool.Manifest `json:"manifest"`
	// Fingerprint is that of the manifest; a change of it, or of Signer, switches the
	// module off until it is approved again.
	Fingerprint tool.Fingerprint `json:"fingerprint"`
	// Signer is the publisher whose signature was verified, Namespace what it may
	// publish, Keys the IDs of the keys. Empty: nobody's was.
	Signer    string   `json:"signer,omitempty"`
	Namespace string   `json:"namespace,omitempty"`
	Keys      []string `json:"keys,omitempty"`
	// Issued is when it was signed, so that an older signature is not taken later.
	Issued time.Time `json:"issued,omitzero"`
	// Evidence is the signatures as they came, at most 1 MiB of JSON, so that they
	// can be verified again, offline.
	Evidence json.RawMessage `json:"evidence,omitempty"`

	// Added is when it was approved, Since when the first of its name was: of two tools
	// that would have one name, the one that was there first has it.
	Added      time.Time `json:"added"`
	FirstAdded time.Time `json:"since,omitzero"`
	AllowLarge bool      `json:"large,omitempty"` // the person has let it be compiled although it is large
	// OffReason says why its tools are not offered; empty: they are. OffTools are single
	// tools, by the module's own name, that a person has switched off.
	OffReason string   `json:"off,omitempty"`
	OffTools  []string `json:"off_tools,omitempty"`
	// Allowances is what its tools may have: by the module's own name of the tool, or ""
	// for all of them.
	Allowances map[string]tool.Allowance `json:"allowed,omitempty"`
}

// OriginalDigest is the SHA-256 in hex of the module as it came.
func (r *Record) OriginalDigest() string { return cmp.Or(r.BaseDigest, r.Digest) }

// OffByPerson is the Off of a module that a person has switched off.
const OffByPerson = "switched off"

// Limits on what a record holds. Most of it comes from strangers and is shown.
const (
	maxTextBytes     = 4 << 10
	maxEvidenceBytes = 1 << 20
	maxKeys          = 16
	maxTools         = 128
	maxAllowed       = 64 // of one kind, for one tool
)

// check is the part of the checks that a start has time for. Its errors read on
// from the name of the module.
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
		return fmt.Errorf("whose size of %d bytes is none", r.Bytes)
	case (r.Signer == "") != (len(r.Keys) == 0) || r.Signer == "" && r.Namespace != "":
		return errors.New("whose signer does not go with its keys and its namespace")
	case len(r.Keys) > maxKeys:
		return fmt.Errorf("which %d keys have signed, more than the limit of %d", len(r.Keys), maxKeys)
	case len(r.Evidence) > maxEvidenceBytes:
		return fmt.Errorf("whose signatures have %d bytes, more than the limit of %d", len(r.Evidence), maxEvidenceBytes)
	case len(r.OffTools) > maxTools || len(r.Allowances) > maxTools+1 || !all(r.OffTools, tool.ValidName):
		return errors.New("whose list of tools that are off, or that are allowed something, cannot be")
	}
	for name, a := range r.Allowances {
		if name != "" && !tool.ValidName(name) {
			return fmt.Errorf("which allows something to %.80q, and that is no tool", name)
		}
		if !all(a.Read, isPath) || !all(a.Write, isPath) || !all(a.Hosts, isVisibleText) || !all(a.Secrets, tool.ValidSecretName) ||
			max(len(a.Read), len(a.Write), len(a.Hosts), len(a.Secrets)) > maxAllowed {
			return fmt.Errorf("which allows to %q what cannot be: directories are absolute and clean, of each kind are at most %d", name, maxAllowed)
		}
	}
	return nil
}

// approvalKey is what of a record the slow checks are about.
func (r *Record) approvalKey() string {
	manifest, _ := json.Marshal(r.Manifest) // what is no JSON is refused before
	return fmt.Sprint(r.Digest, r.Bytes, r.Fingerprint, string(manifest))
}

// checkManifest is the other part: the manifest is one that a module may have, and
// it is what was approved.
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

// readdHint says how to get the module again. The source of one that a project brings
// along is somebody else's text, and nobody's command.
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

// isPath: JSON would change what is no UTF-8, and it would name something else.
func isPath(s string) bool {
	return filepath.IsAbs(s) && filepath.Clean(s) == s && len(s) <= maxTextBytes && utf8.ValidString(s) && !strings.Contains(s, "\x00")
}

func isVisibleText(s string) bool {
	return len(s) <= maxTextBytes && visible.IsLine(s)
}
