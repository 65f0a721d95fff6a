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

// Origin is the place where a module comes from.
type Origin string

const (
	OriginBuiltin Origin = "builtin" // compiled into this program
	OriginFile    Origin = "file"    // named by its path on the command line
	OriginAdded   Origin = "added"   // added by a person, from elsewhere
)

// Module is a WebAssembly file that contains tools.
type Module struct {
	Name   string
	Digest string // SHA-256, in hex, of the bytes that Read returns
	Bytes  int64  // number of bytes that Read returns
	Origin Origin
	Path   string // path or reference of the file, for people; empty for a built-in module
	// Prefix begins the name of each tool in the catalog, before the module's own name of the
	// tool, so that an added tool never takes the name of a built-in one. Empty for a module
	// that is not added.
	Prefix  string
	Version string // version in its manifest; may be empty
	// Signer is the name of the publisher whose signature over the bytes was verified, and
	// Namespace the entry of trust.toml that lets the publisher sign this module. Both are
	// empty if no signature was verified.
	Signer, Namespace string
	// AdminKnowsSigner is set if Signer is a name that the administrator has given. If it is
	// not set, a Signer has its name from the user, who can give any name to anybody.
	AdminKnowsSigner bool
	AllowLarge       bool                   // a person permits the module, or a function in it, to be large
	Config           map[string]string      // default values of the manifest, by their names
	Read             func() ([]byte, error) // returns the bytes; the caller must check them against Digest
}

// UnprefixedName returns the module's own name for a tool that is in the catalog as offered.
func (m *Module) UnprefixedName(offered string) string { return strings.TrimPrefix(offered, m.Prefix) }

// NewModule returns a module with these bytes, which must not change any more.
func NewModule(name string, origin Origin, path string, code []byte) *Module {
	return &Module{
		Name: name, Digest: SHA256(code), Bytes: int64(len(code)), Origin: origin, Path: path,
		Read: func() ([]byte, error) { return code, nil },
	}
}

// Entry is a tool that can be called.
type Entry struct {
	// Spec is the tool's description by its module, with two changes: Capabilities are those
	// of Requested under the configuration, limited by Allowed, and the Name of an added tool
	// begins with the prefix of the module.
	Spec
	Schema *Schema // compiled Spec.Parameters
	Module *Module
	ABI    string // see Manifest.ABI
	// Allowed holds the permissions that a person has given to the tool. Nil: none for a tool
	// of an [OriginAdded] module; any other tool is restricted only by the policy.
	Allowed   *Allowance
	Requested Capabilities // all capabilities that the tool asks for, given or not, under any configuration
}

// aliases maps names that other systems give to tools with the same arguments to our names.
var aliases = map[string]string{
	"read_file":       "file_read",
	"write_file":      "file_write",
	"grep_search":     "grep",
	"execute_command": "bash",
}

// Aliases returns the sorted names by which [Catalog.Find] finds a tool of another name.
func Aliases() []string { return slices.Sorted(maps.Keys(aliases)) }

// Catalog holds the callable tools by name. It does not change, and is safe for concurrent
// use.
type Catalog struct {
	entries map[string]*Entry
	names   []string // sorted keys of entries
}

// NewEntry returns the entry of a tool that is given everything it asks for. The caller has
// checked its schema with the manifest. The schema is compiled again when it is needed.
func NewEntry(spec Spec, mod *Module, abi string) *Entry {
	e := &Entry{Spec: spec, Schema: lazySchema(spec.Parameters), Module: mod, ABI: abi, Requested: spec.Capabilities}
	e.Capabilities = e.Requested.WithConfig(mod.Config)
	return e
}

// NewCatalog returns a catalog of all tools of the modules. Their manifests must have been
// checked, see [ParseManifest]. It sets Module.Config. Errors are those of [NewCatalogOf].
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

// NewCatalogOf returns a catalog of tools, in any order. It is an error if two tools have the
// same name, or if a tool or an added module has a name that is reserved for the host.
func NewCatalogOf(entries []*Entry) (*Catalog, error) {
	c := &Catalog{entries: make(map[string]*Entry, len(entries))}
	for _, e := range entries {
		if e.Name == ListTools {
			return nil, fmt.Errorf("module %q has a tool named %q, which is reserved for the host", e.Module.Name, ListTools)
		}
		if e.Module.Name == ListModule && e.Module.Origin == OriginAdded {
			return nil, fmt.Errorf("a module cannot be added under the name %q, which is reserved for the host", ListModule)
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

// Find returns the tool with a name, or with the name that an alias stands for.
func (c *Catalog) Find(name string) (*Entry, bool) {
	if e, ok := c.entries[name]; ok {
		return e, true
	}
	e, ok := c.entries[aliases[name]]
	return e, ok
}

// decoratedName matches a tool's name with additions of models. Its group is the bare name.
var decoratedName = sync.OnceValue(func() *regexp.Regexp {
	const token, edge = `(?:<\|[a-z_]{1,32}\|>)`, "[ \t\r\n\"'`]{0,8}"
	return regexp.MustCompile("^" + edge + token + `*(?:(?:functions?|tools?|default_api)[.:])?([A-Za-z0-9_-]{1,64})(?:\(\))?(?::[0-9]{1,4})?(?:` +
		token + `(?:commentary|analysis|final|json)?)*` + edge + "$")
})

// BareName returns the name of a tool without the additions of models: blanks, quotes, "()",
// a namespace such as "functions.", the number of the call, and tokens of their formats. It is
// empty if the rest is not a name.
func BareName(name string) string {
	return decoratedName().ReplaceAllString(decoratedName().FindString(name), "$1")
}

// Names returns the names of the tools in alphabetical order.
func (c *Catalog) Names() []string { return slices.Clone(c.names) }

// Nearest returns the name of the tool that is most like name; empty if none is similar.
func (c *Catalog) Nearest(name string) string { return nearest.Find(name, c.names) }

// Entries returns the tools in alphabetical order.
func (c *Catalog) Entries() []*Entry {
	out := make([]*Entry, len(c.names))
	for i, name := range c.names {
		out[i] = c.entries[name]
	}
	return out
}

// Only returns a catalog of the named tools. A name is that of a tool, of an alias, or of a
// module with all its tools. An unknown name is an error, which suggests a similar name if
// there is one.
func (c *Catalog) Only(names []string) (*Catalog, error) {
	known := c.Names()
	ofModule := map[string][]*Entry{}
	for _, e := range c.Entries() {
		if ofModule[e.Module.Name] == nil {
			known = append(known, e.Module.Name)
		}
		ofModule[e.Module.Name] = append(ofModule[e.Module.Name], e)
	}
	kept := map[*Entry]bool{} // a tool may be named twice
	for _, name := range names {
		e, found := c.Find(name)
		if !found && ofModule[name] == nil {
			return nil, fmt.Errorf("there is no tool and no module %.80q%s", name, nearest.Hint(name, known))
		}
		if found {
			kept[e] = true
		}
		for _, e := range ofModule[name] {
			kept[e] = true
		}
	}
	return NewCatalogOf(slices.Collect(maps.Keys(kept)))
}
