package wasm

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ShapeKind is who a module was built for.
type ShapeKind int

// The shapes. Only Native modules run so far.
const (
	// Unknown: nothing in the imports and exports says what the module is for.
	Unknown ShapeKind = iota
	// Native: exports describe and call of stockade:tool/tools@0.1.x.
	Native
	// Incompatible: a native module of another version of the interface, or
	// one that exports only half of it.
	Incompatible
	// Extism: an Extism plugin that needs a manifest to say what to call.
	Extism
	// HyperMCPv1: an Extism plugin with describe and call, as mcp.run and
	// hyper-mcp define them.
	HyperMCPv1
	// HyperMCPv2: an Extism plugin with list_tools and call_tool.
	HyperMCPv2
	// Command: a program for WASI preview 1, with _start.
	Command
	// World: the core module of some other WIT world.
	World
	// Reactor: a WASI library with _initialize and exports that nobody described.
	Reactor
)

// Shape is what Classify recognised.
type Shape struct {
	Kind ShapeKind

	// Interface and Version are set for Native and Incompatible, such as
	// "stockade:tool/tools@0.1.0" and "0.1.0". A native module's functions are
	// exported as Interface + "#describe" and Interface + "#call".
	Interface, Version string

	// Detail adds to the description of the kind; it can be empty.
	Detail string
}

// The interface that a native module exports, and the version that this host has.
const (
	NativeInterface = "stockade:tool/tools"
	NativeVersion   = "0.1.0"
)

var descriptions = [...]string{
	Unknown:      "a module without a known interface",
	Native:       "a tool module for ", // and the interface
	Incompatible: "a tool module for ",
	Extism:       "an Extism plugin",
	HyperMCPv1:   "an Extism plugin for mcp.run or hyper-mcp v1",
	HyperMCPv2:   "an Extism plugin for hyper-mcp v2",
	Command:      "a WASI command",
	World:        "a module for another WIT world",
	Reactor:      "a WASI reactor without a known interface",
}

// String describes the shape for an error: "an Extism plugin", "a WASI
// command", "a tool module for stockade:tool/tools@0.2.0 (...)".
func (s Shape) String() string {
	what := descriptions[s.Kind] + s.Interface
	if s.Detail != "" {
		what += " (" + s.Detail + ")"
	}
	return what
}

// Classify tells from the imports and exports what a module was built for. It
// looks at names only; whether the functions have the right signatures is for
// the caller to check, with [Module.ExportedFunc].
func Classify(m *Module) Shape {
	exported := make(map[string]bool, 8) // functions only
	for _, e := range m.Exports {
		if e.Kind == KindFunc {
			exported[e.Name] = true
		}
	}
	// Extism comes first: its plugins can export _start too, and a std-Go one
	// may export nothing else.
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
	switch {
	case exported["_start"] && len(foreign) == 0:
		s.Kind = Command
	case exported["_initialize"]:
		s.Kind = Reactor
	}
	if len(foreign) > 0 {
		s.Detail = fmt.Sprintf("imports from %.80q", foreign)
	}
	return s
}

// newerPrefix begins the names of the mangling that later tools emit.
const newerPrefix = "cm32p2|" + NativeInterface

func classifyNative(m *Module, exported map[string]bool) (Shape, bool) {
	var best Shape
	bestPatch, found := -1, false
	for _, e := range m.Exports {
		if e.Kind != KindFunc {
			continue
		}
		if strings.HasPrefix(e.Name, newerPrefix) && !found {
			found = true
			best = Shape{Kind: Incompatible, Interface: NativeInterface,
				Detail: "its exports have cm32p2 names; the host calls " + NativeInterface + "@" + NativeVersion + "#call"}
		}
		iface, fn, _ := strings.Cut(e.Name, "#")
		version, ok := strings.CutPrefix(iface, NativeInterface+"@")
		if !ok || fn != "call" && fn != "describe" || len(version) > 64 {
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

// compatiblePatch says whether a version has the API of NativeVersion, and
// which patch of it. Below 1.0 the minor version must match.
func compatiblePatch(version string) (int, bool) {
	major, rest, _ := strings.Cut(version, ".")
	minor, patch, _ := strings.Cut(rest, ".")
	if major != "0" || minor != "1" || patch == "" || len(patch) > 1 && patch[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(patch, 10, 31) // refuses signs, pre-releases and build metadata
	return int(n), err == nil
}

// worldExport matches the name under which a world exports a function of an
// interface, in either mangling.
var worldExport = regexp.MustCompile(`^(?:cm32p2\|)?([a-z][a-z0-9-]*:[a-z][a-z0-9-]*/[a-z][a-z0-9-]*(?:@[0-9A-Za-z.+-]+)?)[#|]`)

func classifyWorld(m *Module, exported map[string]bool) (Shape, bool) {
	for _, e := range m.Exports {
		if e.Kind != KindFunc {
			continue
		}
		if match := worldExport.FindStringSubmatch(e.Name); match != nil {
			return Shape{Kind: World, Detail: fmt.Sprintf("exports %.80s", match[1])}, true
		}
	}
	if exported["cabi_realloc"] || exported["cabi_export_realloc"] || exported["cm32p2_realloc"] ||
		slices.ContainsFunc(m.Customs, func(c Custom) bool { return strings.HasPrefix(c.Name, "component-type") }) {
		return Shape{Kind: World}, true
	}
	return Shape{}, false
}
