package tool

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/nearest"
)

// Definition is what the model sees of a tool.
type Definition struct {
	// Name is 1 to 64 letters, digits, '_' or '-': the set that every provider accepts.
	Name string `json:"name"`
	// Description tells the model what the tool does; at most 8 KiB.
	Description string `json:"description"`
	// Parameters is the JSON Schema of the arguments, whose type is "object".
	Parameters json.RawMessage `json:"parameters"`
}

// Limits on what a manifest may hold. They bound what a hostile module can
// put into the model's context and into the host's memory.
const (
	MaxManifestBytes    = 256 << 10
	maxDescriptionBytes = 8 << 10
	maxToolsPerModule   = 128
	maxHostsPerTool     = 32
	maxConfig           = 64      // names
	MaxConfigBytes      = 8 << 10 // of a value
)

// Files says how much of the mounted directories a tool asks for.
type Files string

// The values of [Files]. The zero value asks for no files.
const (
	FilesNone  Files = ""
	FilesRead  Files = "read"
	FilesWrite Files = "write"
)

// Network says how much of the network a tool asks for.
type Network string

// The values of [Network]. The zero value asks for nothing.
const (
	NetworkNone Network = ""
	// NetworkHTTP: requests that the host makes for the tool, to the hosts that
	// are granted.
	NetworkHTTP Network = "http"
)

// Capabilities is what a tool asks for beyond computing. The zero value asks
// for nothing. Asking is not getting: only a policy.Grant gives.
type Capabilities struct {
	Files Files `json:"files,omitempty"`
	// Exec names the argument that holds the bash command which the tool wants
	// to run, a string; empty means that it starts no process. The host approves and runs
	// exactly that argument's text and nothing else.
	Exec string `json:"exec,omitempty"`
	// ExecTimeout names the argument that holds the command's time limit in
	// whole seconds, if there is one.
	ExecTimeout string `json:"exec_timeout,omitempty"`
	// ExecNetwork names the argument that is true where the command needs the
	// network, if there is one. Without it no command gets any.
	ExecNetwork string `json:"exec_network,omitempty"`
	// Network is how it wants to reach other machines.
	Network Network `json:"network,omitempty"`
	// Hosts are those that it wants to reach, each NAME, *.NAME or NAME:PORT; at
	// most 32. None, with a network: those that the person names.
	Hosts []string `json:"hosts,omitempty"`
	// HostsOf names what of Manifest.Config holds URLs: their hosts are among those that
	// it wants to reach, see [Capabilities.WithConfig].
	HostsOf []string `json:"hosts_of,omitempty"`
	// Store: it wants to keep things beyond a call, for later calls of the tools of its
	// module in the same session.
	Store bool `json:"store,omitempty"`
	// Secrets are those that the tool wants placeholders of, at most 16.
	Secrets []Secret `json:"secrets,omitempty"`
}

// Spec is one tool of a module: its definition and what it asks for.
type Spec struct {
	Definition
	Capabilities Capabilities `json:"capabilities"`
	Content      *Content     `json:"content,omitempty"`
	// PerMinute is how many calls of it a session may begin in a minute, each a second
	// after the one before; 0 is any number. It is for tools that ask a service which does
	// not bear more.
	PerMinute int `json:"per_minute,omitempty"`
	// Doc documents the tool for people. No model reads it, and nothing is decided by it.
	Doc *Doc `json:"doc,omitempty"`
	// Run says how the tool is run if its module knows no tools: it is a command, or a
	// plugin that was made for something else. Nil: the module knows its tools.
	Run *Run `json:"run,omitempty"`
}

// Manifest is what a module says about itself, in its "stockade-tool" custom
// section or in the answer of its describe function; both hold the same JSON.
type Manifest struct {
	// ABI is the WIT package that the module was built for, such as "stockade:tool@0.1.0".
	ABI     string `json:"abi"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Tools   []Spec `json:"tools"`
	// Config is what the module may ask for by name: the names with their defaults, or
	// of a plugin with what its description says.
	Config map[string]string `json:"config,omitempty"`
	// Inferred: the module does not say what its tools need; what they ask for is what
	// it imports, which is the most that they could use.
	Inferred bool `json:"inferred,omitempty"`
	// Notes are what was found when the module was looked at: what was left out of
	// what it says, and what it will not find here. Never its own words.
	Notes []string `json:"notes,omitempty"`
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// ValidName reports whether s may be the name of a tool.
func ValidName(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, letters+"0123456789_-") == ""
}

// NameOf makes a name of a text, such as that of a file: what a name cannot have
// becomes '-'.
func NameOf(text string) string {
	valid := strings.Map(func(r rune) rune {
		if ValidName(string(r)) {
			return r
		}
		return '-'
	}, text)
	return cmp.Or(strings.Trim(valid[:min(len(valid), 64)], "-_"), "module")
}

// ParseManifest decodes and checks a manifest. Its errors name the tool and
// the field at fault.
func ParseManifest(data []byte) (Manifest, error) {
	var m Manifest
	if len(data) > MaxManifestBytes {
		return m, fmt.Errorf("manifest: %d bytes, more than the limit of %d", len(data), MaxManifestBytes)
	}
	if err := CheckJSON(data); err != nil { // a key given twice means one thing to us and another to whoever reads along
		return m, fmt.Errorf("manifest: %w", err)
	}
	if err := checkKeys(data, reflect.TypeFor[Manifest]()); err != nil {
		return m, fmt.Errorf("manifest: %w", err)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("manifest: %w", err)
	}
	if !ValidName(m.Name) {
		return m, fmt.Errorf("manifest: module name %.80q is not 1 to 64 letters, digits, '_' or '-'", m.Name)
	}
	if err := m.checkConfig(); err != nil {
		return m, fmt.Errorf("manifest: config: %w", err)
	}
	if len(m.Tools) == 0 {
		return m, fmt.Errorf("manifest: module %q holds no tool", m.Name)
	}
	if len(m.Tools) > maxToolsPerModule {
		return m, fmt.Errorf("manifest: %d tools, more than the limit of %d", len(m.Tools), maxToolsPerModule)
	}
	seen := make(map[string]bool, len(m.Tools))
	patterns := newPatterns()
	for i := range m.Tools {
		spec := &m.Tools[i]
		if err := spec.check(patterns); err != nil {
			return m, fmt.Errorf("manifest: tool %d: %w", i, err)
		}
		if seen[spec.Name] {
			return m, fmt.Errorf("manifest: two tools are named %q", spec.Name)
		}
		seen[spec.Name] = true
		if err := spec.Capabilities.checkConfigNames(m.Config); err != nil {
			return m, fmt.Errorf("manifest: tool %d: %s: %w", i, spec.Name, err)
		}
	}
	return m, nil
}

func (m *Manifest) checkConfig() error {
	if len(m.Config) > maxConfig {
		return fmt.Errorf("%d names, more than the limit of %d", len(m.Config), maxConfig)
	}
	for _, name := range sortedKeys(m.Config) {
		if n := len(m.Config[name]); n > MaxConfigBytes {
			return fmt.Errorf("the value of %.80q has %d bytes, more than the limit of %d", name, n, MaxConfigBytes)
		}
	}
	return nil
}

func (s *Spec) check(p *patterns) error {
	if !ValidName(s.Name) {
		return fmt.Errorf("name %.80q is not 1 to 64 letters, digits, '_' or '-'", s.Name)
	}
	if s.Description == "" || len(s.Description) > maxDescriptionBytes {
		return fmt.Errorf("%s: description has %d bytes; it needs 1 to %d", s.Name, len(s.Description), maxDescriptionBytes)
	}
	schema, err := p.schema(s.Parameters)
	if err != nil {
		return fmt.Errorf("%s: parameters: %w", s.Name, err)
	}
	if !slices.Contains([]Files{FilesNone, FilesRead, FilesWrite}, s.Capabilities.Files) {
		return fmt.Errorf("%s: capability files is %q; it can be \"read\" or \"write\"", s.Name, s.Capabilities.Files)
	}
	if n := s.Capabilities.Network; n != NetworkNone && n != NetworkHTTP {
		return fmt.Errorf("%s: capability network is %q; it can be \"http\"", s.Name, n)
	}
	if err := s.Capabilities.checkHosts(); err != nil {
		return fmt.Errorf("%s: capability hosts: %w", s.Name, err)
	}
	exec := []struct{ name, arg string }{{"exec", s.Capabilities.Exec}, {"exec_timeout", s.Capabilities.ExecTimeout}, {"exec_network", s.Capabilities.ExecNetwork}}
	for _, c := range exec {
		if c.arg != "" && !schema.HasProperty(c.arg) {
			return fmt.Errorf("%s: capability %s names the argument %.80q, which parameters does not have", s.Name, c.name, c.arg)
		}
		if c.arg != "" && s.Capabilities.Exec == "" {
			return fmt.Errorf("%s: capability %s without exec", s.Name, c.name)
		}
	}
	if exec := s.Capabilities.Exec; exec != "" && !schema.IsString(exec) {
		return fmt.Errorf("%s: capability exec names the argument %.80q, whose type is not \"string\"", s.Name, exec)
	}
	if err := s.Content.check(schema); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	if err := checkSecrets(s.Capabilities.Secrets); err != nil {
		return fmt.Errorf("%s: capability secrets: %w", s.Name, err)
	}
	if s.PerMinute < 0 || s.PerMinute > 60 {
		return fmt.Errorf("%s: per_minute is %d; it can be 1 to 60", s.Name, s.PerMinute)
	}
	if s.Doc != nil {
		if err := s.Doc.check(); err != nil {
			return fmt.Errorf("%s: doc: %w", s.Name, err)
		}
	}
	if s.Run != nil {
		if err := s.Run.check(schema); err != nil {
			return fmt.Errorf("%s: run: %w", s.Name, err)
		}
	}
	return nil
}

// checkHosts puts the hosts into their one form.
func (c Capabilities) checkHosts() error {
	switch {
	case len(c.Hosts)+len(c.HostsOf) > 0 && c.Network == NetworkNone:
		return errors.New("there are hosts, and no network")
	case len(c.Hosts)+len(c.HostsOf) > maxHostsPerTool:
		return fmt.Errorf("%d hosts, more than the limit of %d", len(c.Hosts)+len(c.HostsOf), maxHostsPerTool)
	}
	for i, h := range c.Hosts {
		below, wild := strings.CutPrefix(h, "*.")
		host, err := NormalHost(below)
		if err != nil {
			return err
		}
		if wild {
			host = "*." + host
		}
		c.Hosts[i] = host
	}
	return nil
}

// checkKeys refuses a key that the type does not have, in another case too: a
// capability under another name is not asked for, and nobody told; a key that
// nobody reads may have been meant to narrow one.
func checkKeys(data json.RawMessage, typ reflect.Type) error {
	switch typ.Kind() {
	case reflect.Pointer:
		return checkKeys(data, typ.Elem())
	case reflect.Slice:
		var list []json.RawMessage
		if typ.Elem().Kind() != reflect.Struct || json.Unmarshal(data, &list) != nil {
			return nil // checked as a value
		}
		for i, e := range list {
			if err := checkKeys(e, typ.Elem()); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
	case reflect.Struct:
		var object map[string]json.RawMessage
		if json.Unmarshal(data, &object) != nil {
			return nil
		}
		known := map[string]reflect.Type{}
		for _, f := range reflect.VisibleFields(typ) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				known[name] = f.Type
			}
		}
		for _, key := range sortedKeys(object) {
			if known[key] == nil {
				names := sortedKeys(known)
				return fmt.Errorf("unknown key %.80q%s; the keys here are: %s", key, nearest.Hint(key, names), strings.Join(names, ", "))
			}
			if err := checkKeys(object[key], known[key]); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	return nil
}
