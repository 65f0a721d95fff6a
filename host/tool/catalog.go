package tool

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/sdk/go/nearest"
)

// Origin says where a module comes from.
type Origin string

// The origins.
const (
	OriginBuiltin Origin = "builtin" // compiled into this program
	OriginFile    Origin = "file"    // named by its path on the command line
	OriginAdded   Origin = "added"   // added by a person, from elsewhere
)

// Module is a WebAssembly file that holds tools. It is not read until it is needed.
type Module struct {
	Name   string
	Digest string // sha256 in hex of the bytes that Read returns
	Bytes  int64
	Origin Origin
	Path   string // where a person finds it; empty for a built-in module
	// Prefix stands before the module's own name of each tool, as it is offered: a
	// stranger's tool never takes the name of another.
	Prefix  string
	Version string // as its manifest says; can be empty
	// Signer is whose signature over the bytes was verified, and Namespace the
	// name under which that signer publishes. Empty: nobody's was.
	Signer, Namespace string
	// AdminKnowsSigner reports whether it is the administrator who knows the signer, and
	// not only the user, who may call anybody by any name.
	AdminKnowsSigner bool
	AllowLarge       bool // a person has asked for it to be compiled although it, or one of its functions, is large
	// Config is what the manifest says that the module may ask for by name.
	Config map[string]string
	// Read returns the bytes. Whoever uses them checks them against Digest first.
	Read func() ([]byte, error)
}

// UnprefixedName is the module's own name of a tool that is offered under this one.
func (m *Module) UnprefixedName(offered string) string { return strings.TrimPrefix(offered, m.Prefix) }

// NewModule is the module with these bytes, which must not change any more.
func NewModule(name string, origin Origin, path string, code []byte) *Module {
	return &Module{
		Name: name, Digest: SHA256(code), Bytes: int64(len(code)), Origin: origin, Path: path,
		Read: func() ([]byte, error) { return code, nil },
	}
}

// Entry is one tool that can be called.
type Entry struct {
	// Spec is what its module says of it. Of a tool that was added, Name begins with
	// the prefix of the module, and Capabilities are those that Allowed covers: what
	// it asks for and was not given does not count.
	Spec
	Schema *Schema // of Spec.Parameters
	Module *Module
	ABI    string // the WIT package that the module says it was built for
	// Allowed is what the person lets a tool have that was added. Nil: whatever
	// tools are shown, as built-in ones are.
	Allowed *Allowance
	// Requested is all that it asks for, of which Capabilities are a part.
	Requested Capabilities
}

// aliases are names that other systems gave to the same tools.
var aliases = map[string]string{
	"read_file":       "file_read",
	"write_file":      "file_write",
	"grep_search":     "grep",
	"execute_command": "bash",
}

// Aliases lists the names that stand for tools of other names.
func Aliases() []string { return slices.Sorted(maps.Keys(aliases)) }

// Catalog is the set of tools that can be called, by name. It is built once
// and then safe for concurrent use.
type Catalog struct {
	entries map[string]*Entry
	names   []string
}

// NewEntry is a tool of a module that has all that it asks for. Its schema, which
// was checked with the manifest, is compiled when it is needed.
func NewEntry(spec Spec, mod *Module, abi string) *Entry {
	e := &Entry{Spec: spec, Schema: lazySchema(spec.Parameters), Module: mod, ABI: abi, Requested: spec.Capabilities}
	e.Capabilities = e.Requested.WithConfig(mod.Config)
	return e
}

// NewCatalog lists the tools of the modules, whose manifests have been checked
// (see [ParseManifest]). The modules get the Config of theirs. What is an error is that of [NewCatalogOf].
func NewCatalog(modules map[*Module]Manifest) (*Catalog, error) {
	var entries []*Entry
	for mod, manifest := range modules {
		mod.Config = manifest.Config
		for _, spec := range manifest.Tools {
			entries = append(entries, NewEntry(spec, mod, manifest.ABI))
		}
	}
	return NewCatalogOf(entries)
}

// NewCatalogOf lists tools, in any order. A name that appears twice is an error,
// as is one that the host has taken: one tool must never silently take the place
// of another.
func NewCatalogOf(entries []*Entry) (*Catalog, error) {
	c := &Catalog{entries: make(map[string]*Entry, len(entries))}
	for _, e := range entries {
		if e.Name == ListTools {
			return nil, fmt.Errorf("module %q has a tool of the name %q, which is the host's own", e.Module.Name, ListTools)
		}
		if e.Module.Name == ListModule && e.Module.Origin == OriginAdded {
			return nil, fmt.Errorf("a module cannot be added under the name %q, which is the host's own", ListModule)
		}
		if other, ok := c.entries[e.Name]; ok {
			return nil, fmt.Errorf("tool %q is in module %q and in module %q", e.Name, other.Module.Name, e.Module.Name)
		}
		c.entries[e.Name] = e
		c.names = append(c.names, e.Name)
	}
	slices.Sort(c.names)
	return c, nil
}

// Find returns the tool of that name, or of the name that an alias stands for.
func (c *Catalog) Find(name string) (*Entry, bool) {
	if e, ok := c.entries[name]; ok {
		return e, true
	}
	e, ok := c.entries[aliases[name]]
	return e, ok
}

var decoratedName = sync.OnceValue(func() *regexp.Regexp {
	const token, edge = `(?:<\|[a-z_]{1,32}\|>)`, "[ \t\r\n\"'`]{0,8}"
	return regexp.MustCompile("^" + edge + token + `*(?:(?:functions?|tools?|default_api)[.:])?([A-Za-z0-9_-]{1,64})(?:\(\))?(?::[0-9]{1,4})?(?:` +
		token + `(?:commentary|analysis|final|json)?)*` + edge + "$")
})

// BareName returns the name of a tool without what models add to it: blanks, quotes, brackets, a
// namespace, the number of the call, and tokens of their formats. Empty: the rest is no name.
func BareName(name string) string {
	return decoratedName().ReplaceAllString(decoratedName().FindString(name), "$1")
}

// Names lists the tools in alphabetical order.
func (c *Catalog) Names() []string { return slices.Clone(c.names) }

// Nearest names the tool most like name, or nothing when none is.
func (c *Catalog) Nearest(name string) string { return nearest.Find(name, c.names) }

// Entries returns the tools in alphabetical order.
func (c *Catalog) Entries() []*Entry {
	out := make([]*Entry, len(c.names))
	for i, name := range c.names {
		out[i] = c.entries[name]
	}
	return out
}

// Only is the catalog of those tools that are named, each by its own name or by
// that of its module. A name of neither is an error that says what was meant.
func (c *Catalog) Only(names []string) (*Catalog, error) {
	known := c.Names()
	ofModule := map[string][]*Entry{}
	for _, e := range c.Entries() {
		if ofModule[e.Module.Name] == nil {
			known = append(known, e.Module.Name)
		}
		ofModule[e.Module.Name] = append(ofModule[e.Module.Name], e)
	}
	kept := map[*Entry]bool{} // one may be named twice
	for _, name := range names {
		e, one := c.Find(name)
		if !one && ofModule[name] == nil {
			return nil, fmt.Errorf("there is no tool and no module %.80q%s", name, nearest.Hint(name, known))
		}
		if one {
			kept[e] = true
		}
		for _, e := range ofModule[name] {
			kept[e] = true
		}
	}
	return NewCatalogOf(slices.Collect(maps.Keys(kept)))
}
