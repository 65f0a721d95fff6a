package store

import (
	"encoding/json"
	"time"

	"github.com/stockade-dev/stockade/host/tool"
)

// Record is a module that a person has added. What it was approved with is all in
// it, so that a start reads one file and no module.
type Record struct {
	// Name is the one under which its tools are offered, as NAME_tool; no two
	// records of the same place have the same.
	Name string `json:"name"`
	// Project is the workspace in which it counts; empty: in any.
	Project string `json:"project,omitempty"`
	// Lock is the SHA-256 of the stockade.lock that was approved with it, in hex; empty:
	// it is in none. System: it is in the administrator's folder.
	Lock   string `json:"lock,omitempty"`
	System bool   `json:"system,omitempty"`
	Stamp  string `json:"stamp,omitempty"` // of the administrator's file, changes when that does
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
	// Manifest is what the module said of itself, as it was approved.
	Manifest json.RawMessage `json:"manifest"`
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
	// Evidence is the signatures as they came, so that they can be verified again,
	// offline.
	Evidence json.RawMessage `json:"evidence,omitempty"`

	Added time.Time `json:"added"`
	// Off says why its tools are not offered; empty: they are. OffTools are single
	// tools, by the module's own name, that a person has switched off.
	Off      string   `json:"off,omitempty"`
	OffTools []string `json:"off_tools,omitempty"`
	// Allowed is what its tools may have: by the module's own name of the tool, or ""
	// for all of them.
	Allowed map[string]tool.Allowance `json:"allowed,omitempty"`
}

// OffByPerson is the Off of a module that a person has switched off.
const OffByPerson = "switched off"
