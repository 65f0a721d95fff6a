package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// SpecTexts holds a tool's untrusted description of itself, as it is shown to a person.
type SpecTexts struct {
	Description string `toml:"description" json:"description"`
	Schema      string `toml:"schema" json:"schema"`     // JSON with sorted keys; then the Run of the tool, if any
	AsksFor     string `toml:"asks_for" json:"asks_for"` // Capabilities.String
}

// Texts returns the tool's description of itself.
func (s Spec) Texts() SpecTexts {
	schema := canonical(s.Parameters)
	if s.Run != nil { // it decides how the arguments are used
		schema += " run " + string(Marshal(s.Run))
	}
	return SpecTexts{s.Description, schema, s.Capabilities.String()}
}

// Fingerprint holds the SHA-256, in hex, of each text in the [SpecTexts] of a tool, or of those
// of all tools of a module.
type Fingerprint struct {
	Description string `toml:"description" json:"description"`
	Schema      string `toml:"schema" json:"schema"`
	Needs       string `toml:"needs" json:"needs"`
}

// Fingerprint returns the fingerprint of one tool.
func (s SpecTexts) Fingerprint() Fingerprint {
	return Fingerprint{hashText(s.Description), hashText(s.Schema), hashText(s.AsksFor)}
}

// Fingerprint returns the fingerprint of all tools of a module, whatever their order is. It
// covers their names and the configuration, too, but not Content, PerMinute and Doc.
func (m Manifest) Fingerprint() Fingerprint {
	var lines [3][]string
	for _, s := range m.Tools {
		f := s.Texts().Fingerprint()
		for i, sum := range []string{f.Description, f.Schema, f.Needs} {
			lines[i] = append(lines[i], s.Name+" "+sum+"\n")
		}
	}
	if len(m.Config) > 0 {
		lines[1] = append(lines[1], " config "+hashText(string(Marshal(m.Config)))+"\n") // no tool has a name that begins with a blank
	}
	for i := range lines {
		slices.Sort(lines[i])
	}
	sum := func(i int) string { return hashText(strings.Join(lines[i], "")) }
	return Fingerprint{sum(0), sum(1), sum(2)}
}

func hashText(text string) string { return SHA256([]byte(text)) }

// SHA256 returns the digest of data, in hex. Modules, manifests and lockfiles name data by it.
func SHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// canonical returns JSON with sorted keys, because the order in a manifest does not matter.
// Numbers are rounded to floats. Text that is not JSON is returned unchanged.
func canonical(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) == nil {
		if out, err := json.Marshal(v); err == nil {
			return string(out)
		}
	}
	return string(raw)
}

// asWords returns the names in order, separated by commas.
func asWords(names []string) string {
	var out []string
	for _, name := range slices.Sorted(slices.Values(names)) {
		out = append(out, asWord(name))
	}
	return strings.Join(out, ",")
}

// asWord returns a name, in quotes if it has blanks, commas or quotes.
func asWord(name string) string {
	if strings.ContainsAny(name, " \t\r\n,\"") {
		return strconv.Quote(name)
	}
	return name
}

// String returns the capabilities in one line; "nothing" if there are none. It sorts the lists,
// except the hosts of a secret. Names that could be taken for several words are quoted.
func (c Capabilities) String() string {
	var out []string
	if c.Files != FilesNone {
		out = append(out, fmt.Sprintf("files=%s", c.Files))
	}
	if c.Exec != "" {
		out = append(out, "exec="+asWord(c.Exec))
	}
	if c.ExecTimeout != "" {
		out = append(out, "exec_timeout="+asWord(c.ExecTimeout))
	}
	if c.ExecNetwork != "" {
		out = append(out, "exec_network="+asWord(c.ExecNetwork))
	}
	if c.Network != NetworkNone {
		out = append(out, fmt.Sprintf("network=%s", c.Network))
	}
	if len(c.Hosts) > 0 {
		out = append(out, "hosts="+asWords(c.Hosts))
	}
	if len(c.HostsOf) > 0 {
		out = append(out, "hosts_of="+asWords(c.HostsOf))
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
