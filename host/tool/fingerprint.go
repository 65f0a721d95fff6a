package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// SpecTexts is what a tool says of itself, as a person is shown it. It is not to be
// trusted.
type SpecTexts struct {
	Description string `toml:"description" json:"description"`
	Schema      string `toml:"schema" json:"schema"`     // JSON, its keys sorted; behind it how the tool is run, if that is said
	AsksFor     string `toml:"asks_for" json:"asks_for"` // words that change when anything does
}

// Texts is what a tool says of itself.
func (s Spec) Texts() SpecTexts {
	schema := canonical(s.Parameters)
	if s.Run != nil { // what becomes of the arguments
		schema += " run " + string(Marshal(s.Run))
	}
	return SpecTexts{s.Description, schema, s.Capabilities.String()}
}

// Fingerprint is the SHA-256, in hex, of each thing that a tool, or all tools of a
// module, say of themselves.
type Fingerprint struct {
	Description string `toml:"description" json:"description"`
	Schema      string `toml:"schema" json:"schema"`
	Needs       string `toml:"needs" json:"needs"`
}

// Fingerprint is that of one tool.
func (s SpecTexts) Fingerprint() Fingerprint {
	return Fingerprint{hashText(s.Description), hashText(s.Schema), hashText(s.AsksFor)}
}

// Fingerprint is that of all tools of a module, with their names. The order in
// which the manifest has them means nothing.
func (m Manifest) Fingerprint() Fingerprint {
	var lines [3][]string
	for _, s := range m.Tools {
		f := s.Texts().Fingerprint()
		for i, sum := range []string{f.Description, f.Schema, f.Needs} {
			lines[i] = append(lines[i], s.Name+" "+sum+"\n")
		}
	}
	if len(m.Config) > 0 {
		lines[1] = append(lines[1], " config "+hashText(string(Marshal(m.Config)))+"\n") // no name of a tool begins so
	}
	for i := range lines {
		slices.Sort(lines[i])
	}
	sum := func(i int) string { return hashText(strings.Join(lines[i], "")) }
	return Fingerprint{sum(0), sum(1), sum(2)}
}

func hashText(text string) string { return SHA256([]byte(text)) }

// SHA256 is the digest of bytes, in hex, as it stands for them wherever modules,
// their manifests and their lockfiles are named.
func SHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// canonical writes JSON with its keys sorted: the order in a manifest means
// nothing. What is no JSON stands for itself.
func canonical(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) == nil {
		if out, err := json.Marshal(v); err == nil {
			return string(out)
		}
	}
	return string(raw)
}

// String says what a tool asks for, in words that change when anything does.
func (c Capabilities) String() string {
	var out []string
	if c.Files != FilesNone {
		out = append(out, fmt.Sprintf("files=%s", c.Files))
	}
	if c.Exec != "" {
		out = append(out, fmt.Sprintf("exec=%s", c.Exec))
	}
	if c.ExecTimeout != "" {
		out = append(out, fmt.Sprintf("exec_timeout=%s", c.ExecTimeout))
	}
	if c.ExecNetwork != "" {
		out = append(out, fmt.Sprintf("exec_network=%s", c.ExecNetwork))
	}
	if c.Network != NetworkNone {
		out = append(out, fmt.Sprintf("network=%s", c.Network))
	}
	if len(c.Hosts) > 0 {
		out = append(out, "hosts="+strings.Join(slices.Sorted(slices.Values(c.Hosts)), ","))
	}
	if len(c.HostsOf) > 0 {
		out = append(out, "hosts_of="+strings.Join(slices.Sorted(slices.Values(c.HostsOf)), ","))
	}
	if c.Store {
		out = append(out, "store")
	}
	var secrets []string
	for _, s := range c.Secrets {
		secrets = append(secrets, "secret="+s.String())
	}
	slices.Sort(secrets)
	if out = append(out, secrets...); out == nil {
		return "nothing"
	}
	return strings.Join(out, " ")
}
