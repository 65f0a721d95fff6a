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

// Definition is the part of a tool that the model sees.
type Definition struct {
	Name        string          `json:"name"`        // 1 to 64 letters, digits, '_' or '-'
	Description string          `json:"description"` // text for the model, of 1 byte to 8 KiB
	Parameters  json.RawMessage `json:"parameters"`  // JSON Schema of the arguments, whose type is "object"
}

// Limits on a manifest; one beyond them is refused. They limit the data that a hostile module
// can put into the model's context and into the host's memory.
const (
	MaxManifestBytes    = 256 << 10
	maxDescriptionBytes = 8 << 10
	maxToolsPerModule   = 128
	maxHostsPerTool     = 32      // entries of Hosts and HostsOf together
	maxConfig           = 64      // names in Manifest.Config
	MaxConfigBytes      = 8 << 10 // bytes of one value of Manifest.Config
)

// Files is the access to the mounted directories that a tool asks for.
type Files string

const (
	FilesNone  Files = ""
	FilesRead  Files = "read"
	FilesWrite Files = "write" // to read and to write
)

// Network is the access to the network that a tool asks for.
type Network string

const (
	NetworkNone Network = ""
	// NetworkHTTP asks for requests that the host makes for the tool, to the granted hosts.
	NetworkHTTP Network = "http"
)

// Capabilities are the things that a tool asks for beyond computing. The zero value asks for
// nothing. Asking is not getting: only a policy.Grant gives.
type Capabilities struct {
	Files Files `json:"files,omitempty"`
	// Exec is the name of the argument with the bash command that the tool wants to run, a
	// string. The host approves and runs exactly the text of this argument. Empty: the tool
	// starts no process.
	Exec string `json:"exec,omitempty"`
	// ExecTimeout is the name of the argument with the time limit of the command in whole
	// seconds; empty: the tool has no such argument.
	ExecTimeout string `json:"exec_timeout,omitempty"`
	// ExecNetwork is the name of the argument that is true if the command needs the network;
	// empty: the command never gets the network.
	ExecNetwork string  `json:"exec_network,omitempty"`
	Network     Network `json:"network,omitempty"`
	// Hosts lists the hosts that the tool wants to reach, for example NAME, *.NAME or
	// NAME:PORT; at most 32, with HostsOf. Empty, with Network: hosts that the person names.
	Hosts []string `json:"hosts,omitempty"`
	// HostsOf lists names of Manifest.Config whose values are URLs. The tool wants to reach
	// the hosts of these URLs, too, see [Capabilities.WithConfig].
	HostsOf []string `json:"hosts_of,omitempty"`
	// Store is set if the tool wants to keep data beyond a call, for later calls of the tools
	// of its module in the same session.
	Store   bool     `json:"store,omitempty"`
	Secrets []Secret `json:"secrets,omitempty"` // secrets that the tool wants placeholders for; at most 16
}

// Spec is one tool of a module: its definition and its requests.
type Spec struct {
	Definition
	Capabilities Capabilities `json:"capabilities"`
	Content      *Content     `json:"content,omitempty"` // nil: results report no hashes
	// PerMinute limits the calls that a session may begin in a minute; more are refused, and
	// a call waits for a second after the one before. 0: no limit. It is for tools that use a
	// service with such a limit.
	PerMinute int  `json:"per_minute,omitempty"`
	Doc       *Doc `json:"doc,omitempty"` // for people: no model and no decision uses it; may be nil
	// Run describes the call of a command, or of a plugin for another host that does not list
	// the tool itself. Nil: the module is called as its ABI says.
	Run *Run `json:"run,omitempty"`
}

// Manifest is a module's description of itself. It comes from its "stockade-tool" custom
// section or from its describe function, as the same JSON. For a module that was made for
// another host, a person or the host has made it.
type Manifest struct {
	// ABI is the WIT package that the module was built for, such as "stockade:tool@0.1.0", or
	// one of the constants for other hosts.
	ABI     string `json:"abi"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Tools   []Spec `json:"tools"`
	// Config holds the default values that the module can read, by their names.
	Config map[string]string `json:"config,omitempty"`
	// Inferred is set if the module does not list the capabilities of its tools. They ask for
	// everything that the imports of the module could use.
	Inferred bool `json:"inferred,omitempty"`
	// Notes are remarks of the host on the module: parts of its description that were left
	// out, and imports that do not exist here. They may quote names from the module.
	Notes []string `json:"notes,omitempty"`
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// ValidName reports whether s is allowed as the name of a tool.
func ValidName(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, letters+"0123456789_-") == ""
}

// CheckName returns an error if s is not allowed as the name of a tool.
func CheckName(s string) error {
	if !ValidName(s) {
		return fmt.Errorf("%.80q is not 1 to 64 letters, digits, '_' or '-'", s)
	}
	return nil
}

// NameOf returns a valid name made from a text, such as the name of a file. Other characters
// become '-'. The name is cut to 64 bytes, and loses '-' and '_' at both ends; if nothing is
// left, it is "module".
func NameOf(text string) string {
	valid := strings.Map(func(r rune) rune {
		if ValidName(string(r)) {
			return r
		}
		return '-'
	}, text)
	return cmp.Or(strings.Trim(valid[:min(len(valid), 64)], "-_"), "module")
}

// ParseManifest decodes and checks a manifest, and normalizes its hosts. Its errors name the
// part that is wrong.
func ParseManifest(data []byte) (Manifest, error) {
	var m Manifest
	if len(data) > MaxManifestBytes {
		return m, fmt.Errorf("manifest: %d bytes, more than the limit of %d", len(data), MaxManifestBytes)
	}
	if err := CheckJSON(data); err != nil { // of two equal keys, another reader may take the other one
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

// check checks a tool, and normalizes its hosts. p holds limits for patterns of all tools.
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

// checkHosts checks the hosts, and normalizes them in place.
func (c Capabilities) checkHosts() error {
	switch {
	case len(c.Hosts)+len(c.HostsOf) > 0 && c.Network == NetworkNone:
		return errors.New("hosts are given without network")
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

// checkKeys refuses keys that typ does not have, and keys in another case. A capability under a
// wrong name would silently not be asked for, and a key that nobody reads may have been meant
// to restrict one.
func checkKeys(data json.RawMessage, typ reflect.Type) error {
	switch typ.Kind() {
	case reflect.Pointer:
		return checkKeys(data, typ.Elem())
	case reflect.Slice:
		var list []json.RawMessage
		if typ.Elem().Kind() != reflect.Struct || json.Unmarshal(data, &list) != nil {
			return nil // json.Unmarshal checks it
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
