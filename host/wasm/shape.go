package wasm

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ShapeKind is the kind of host that a module was built for.
type ShapeKind int

// The shapes. Package sandbox decides which of them run.
const (
	Unknown        ShapeKind = iota // the imports and exports do not tell
	Native                          // exports describe and call of stockade:tool/tools@0.1.x
	Incompatible                    // a native module of another version, or with half of the interface
	Extism                          // an Extism plugin that cannot list its tools, or what looks like a plugin
	HyperMCPv1                      // an Extism plugin with describe and call, as mcp.run and hyper-mcp define them
	HyperMCPv2                      // an Extism plugin with list_tools and call_tool
	Command                         // a program for WASI preview 1, with _start
	World                           // the core module of some other WIT world
	Reactor                         // a WASI library with _initialize and other exports that are unknown
	Library                         // a C library, for a program that knows its functions
	ComponentModel                  // a component, which is no core module
)

var shapeNames = [...]string{
	"unknown", "native", "incompatible", "extism", "hyper-mcp-v1", "hyper-mcp-v2", "command", "world", "reactor", "library", "component",
}

// String returns a word for the kind. The words never change.
func (k ShapeKind) String() string { return shapeNames[k] }

// Shape is the result of Classify and ClassifyComponent.
type Shape struct {
	Kind ShapeKind

	// Interface and Version are set for Native and Incompatible, such as
	// "stockade:tool/tools@0.1.0" and "0.1.0", without a version if the names of the exports have
	// the cm32p2 form. A native module exports its functions as Interface + "#describe" and
	// Interface + "#call". For a component, Version is that of WASI, such as "0.2"; empty if it
	// does not use WASI.
	Interface, Version string

	// Detail adds to the description of the kind, such as names of exports; it can be empty.
	Detail string
}

// The interface that a native module exports, and its version in this host.
const (
	NativeInterface = "stockade:tool/tools"
	NativeVersion   = "0.1.0"
)

var descriptions = [...]string{
	Unknown:      "a module without a known interface",
	Native:       "a tool module for ", // followed by the interface
	Incompatible: "a tool module for ",
	Extism:       "an Extism plugin",
	HyperMCPv1:   "an Extism plugin for mcp.run or hyper-mcp v1",
	HyperMCPv2:   "an Extism plugin for hyper-mcp v2",
	Command:      "a WASI command",
	World:        "a module for another WIT world",
	Reactor:      "a WASI reactor without a known interface",
	Library:      "a library for a program that embeds it",

	ComponentModel: "a component",
}

// String describes the shape for an error: "an Extism plugin", "a WASI command", "a tool module
// for stockade:tool/tools@0.2.0 (...)".
func (s Shape) String() string {
	what := descriptions[s.Kind] + s.Interface
	if s.Kind == ComponentModel && s.Version != "" {
		what += " of WASI " + s.Version
	}
	if s.Detail != "" {
		what += " (" + s.Detail + ")"
	}
	return what
}

// Classify derives the shape of a module from its imports, exports and custom sections. It looks
// mostly at names; the caller must check the signatures of functions, with [Module.ExportedFunc].
func Classify(m *Module) Shape {
	exported := make(map[string]bool, 8) // functions only
	for _, e := range m.Exports {
		if e.Kind == KindFunc {
			exported[e.Name] = true
		}
	}
	// Extism comes first: its plugins can export _start too, and a plugin in std Go may
	// export nothing else.
	if slices.ContainsFunc(m.Imports, func(i Import) bool {
		return i.Module == "extism:host/env" || i.Module == "extism:host/user"
	}) {
		switch {
		case exported["list_tools"] && exported["call_tool"]:
			return Shape{Kind: HyperMCPv2}
		case exported["describe"] && exported["call"]:
			return Shape{Kind: HyperMCPv1}
		}
		return Shape{Kind: Extism}
	}
	if s, ok := classifyNative(m, exported); ok {
		return s
	}
	if s, ok := classifyWorld(m, exported); ok {
		return s
	}
	var foreign []string
	for _, i := range m.Imports {
		if i.Module != "wasi_snapshot_preview1" && i.Module != "wasi_unstable" && !slices.Contains(foreign, i.Module) {
			if foreign = append(foreign, i.Module); len(foreign) == 3 {
				break // enough for a message
			}
		}
	}
	s := Shape{Kind: Unknown}
	family := ""
	switch {
	case len(foreign) == 0 && !exported["_initialize"] && looksLikePlugin(m):
		s.Kind = Extism
	case exported["_start"] && len(foreign) == 0:
		s.Kind = Command
	case exported["_start"]:
	default:
		if family = describeLibrary(m); family != "" {
			s.Kind = Library
		} else if exported["_initialize"] {
			s.Kind = Reactor
		}
	}
	var details []string
	if family != "" {
		details = append(details, family)
	}
	if len(foreign) > 0 {
		details = append(details, fmt.Sprintf("imports from %+.80q", foreign))
	}
	s.Detail = strings.Join(details, ", ")
	return s
}

// looksLikePlugin reports whether a module may be an Extism plugin although it imports nothing
// of Extism: its functions take nothing and return a code, and it exports its memory. Functions
// that compilers export are skipped.
func looksLikePlugin(m *Module) bool {
	tools := false
	for _, e := range m.Exports {
		if e.Kind != KindFunc || strings.HasPrefix(e.Name, "_") || strings.HasPrefix(e.Name, "asyncify_") || slices.Contains([]string{"malloc", "calloc", "realloc", "free"}, e.Name) {
			continue
		}
		if t, _ := m.FuncType(e.Index); t.String() != "() -> i32" {
			return false
		}
		tools = true
	}
	memory, _ := m.Export("memory")
	return tools && memory.Kind == KindMemory
}

// minLibraryFuncs is the least number of functions with one prefix that make a module a library. A
// plugin has a few functions without a common prefix.
const minLibraryFuncs = 16

// libraryPrefix matches the prefix that the functions of a C library share.
var libraryPrefix = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([A-Za-z][A-Za-z0-9]{0,15}_)[A-Za-z0-9]`) })

// describeLibrary describes the largest group of exported functions with one prefix. It returns ""
// if the module is no library. A library must export an allocator, for its host to pass arguments.
func describeLibrary(m *Module) string {
	members := make(map[string]int)
	best, allocates := "", false
	for _, e := range m.Exports {
		allocates = allocates || e.Kind == KindFunc && strings.HasSuffix(e.Name, "alloc")
		match := libraryPrefix().FindStringSubmatch(e.Name)
		if e.Kind != KindFunc || match == nil || match[1] == "asyncify_" {
			continue
		}
		if members[match[1]]++; members[match[1]] > members[best] {
			best = match[1]
		}
	}
	if !allocates || members[best] < minLibraryFuncs {
		return ""
	}
	return fmt.Sprintf("exports %d functions %s*", members[best], best)
}

// ClassifyComponent derives the shape of a component from the names of its imports and exports.
func ClassifyComponent(c *Component) Shape {
	s := Shape{Kind: ComponentModel}
	for _, e := range slices.Concat(c.Exports, c.Imports) {
		if match := wasiInterface().FindStringSubmatch(e.Name); match != nil {
			s.Version = match[1]
			break
		}
	}
	var names []string
	for _, e := range c.Exports {
		if len(names) == 3 { // enough for a message
			names = append(names, "and more")
			break
		}
		names = append(names, fmt.Sprintf("%+.80q", e.Name))
	}
	if len(names) > 0 {
		s.Detail = "exports " + strings.Join(names, ", ")
	}
	return s
}

// wasiInterface matches the name of an interface of WASI, and captures the version in it up to the
// second number, such as "0.2".
var wasiInterface = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^wasi:[a-z][a-z0-9-]*/[a-z][a-z0-9-]*@([0-9]{1,4}\.[0-9]{1,4})\.`)
})

// ImportGroup holds the names that a module imports from one other module.
type ImportGroup struct {
	Module string
	Names  []string
}

// ImportGroups returns the imports, grouped by their module, in the order of first appearance.
func (m *Module) ImportGroups() []ImportGroup {
	var out []ImportGroup
	at := make(map[string]int)
	for _, i := range m.Imports {
		k, ok := at[i.Module]
		if !ok {
			k = len(out)
			at[i.Module], out = k, append(out, ImportGroup{Module: i.Module})
		}
		out[k].Names = append(out[k].Names, i.Name)
	}
	return out
}

// cm32p2Prefix begins the names of exports that later tools emit, in another mangling.
const cm32p2Prefix = "cm32p2|" + NativeInterface

// plainVersion matches a version that is safe to show.
var plainVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9A-Za-z.+-]{0,64}$`) })

func classifyNative(m *Module, exported map[string]bool) (Shape, bool) {
	var best Shape
	bestPatch, found := -1, false
	for _, e := range m.Exports {
		if e.Kind != KindFunc {
			continue
		}
		if strings.HasPrefix(e.Name, cm32p2Prefix) && !found {
			found = true
			best = Shape{Kind: Incompatible, Interface: NativeInterface,
				Detail: "its exports have cm32p2 names; the host calls " + NativeInterface + "@" + NativeVersion + "#call"}
		}
		iface, fn, _ := strings.Cut(e.Name, "#")
		version, ok := strings.CutPrefix(iface, NativeInterface+"@")
		if !ok || fn != "call" && fn != "describe" || !plainVersion().MatchString(version) {
			continue
		}
		s := Shape{Kind: Incompatible, Interface: iface, Version: version}
		patch, compatible := compatiblePatch(version)
		switch {
		case !compatible:
			s.Detail = "this host has version " + NativeVersion
		case !exported[iface+"#call"]:
			s.Detail = "it does not export call"
		case !exported[iface+"#describe"]:
			s.Detail = "it does not export describe"
		default:
			s.Kind = Native
			// A module may export several versions; take the newest that fits.
			if patch > bestPatch {
				best, bestPatch, found = s, patch, true
			}
			continue
		}
		if !found {
			best, found = s, true
		}
	}
	return best, found
}

// compatiblePatch reports whether a version has the API of NativeVersion, and returns its patch
// number. Below 1.0 the minor version must match.
func compatiblePatch(version string) (int, bool) {
	major, rest, _ := strings.Cut(version, ".")
	minor, patch, _ := strings.Cut(rest, ".")
	if major != "0" || minor != "1" || patch == "" || len(patch) > 1 && patch[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(patch, 10, 31) // refuses signs, pre-releases and build metadata
	return int(n), err == nil
}

// worldExport matches the export name of a function of an interface, in either mangling.
var worldExport = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:cm32p2\|)?([a-z][a-z0-9-]*:[a-z][a-z0-9-]*/[a-z][a-z0-9-]*(?:@[0-9A-Za-z.+-]+)?)[#|]`)
})

func classifyWorld(m *Module, exported map[string]bool) (Shape, bool) {
	for _, e := range m.Exports {
		if e.Kind != KindFunc {
			continue
		}
		if match := worldExport().FindStringSubmatch(e.Name); match != nil {
			return Shape{Kind: World, Detail: fmt.Sprintf("exports %.80s", match[1])}, true
		}
	}
	if exported["cabi_realloc"] || exported["cabi_export_realloc"] || exported["cm32p2_realloc"] ||
		slices.ContainsFunc(m.Customs, func(c Custom) bool { return strings.HasPrefix(c.Name, "component-type") }) {
		return Shape{Kind: World}, true
	}
	return Shape{}, false
}
