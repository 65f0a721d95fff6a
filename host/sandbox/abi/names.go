package abi

import "github.com/tetratelabs/wazero/api"

// Names of the native ABI; wit/README.md lists them for authors.
const (
	Version        = "0.1.0"
	Package        = "stockade:tool"
	ManifestABI    = Package + "@" + Version
	ToolsInterface = Package + "/tools@" + Version

	ExportDescribe = ToolsInterface + "#describe"
	ExportCall     = ToolsInterface + "#call"

	ExportMemory     = "memory"
	ExportInitialize = "_initialize"
	// ExportWarm is an optional export that the host calls before it takes a snapshot. It may
	// exercise the code of a call on data of its own, so that the memory of the snapshot is
	// prepared for calls.
	ExportWarm = "stockade:warm"
)

// Names of the guest's allocators, the preferred name first.
var (
	ExportRealloc = []string{"cabi_export_realloc", "cabi_realloc"} // for arguments of exports
	ImportRealloc = []string{"cabi_import_realloc", "cabi_realloc"} // for results of imports
)

// Signature is the type of a function with lowered values, as WebAssembly sees it.
type Signature struct {
	Params, Results []api.ValueType
}

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// Exports maps the names of the functions that a module has to export to their lowered types.
var Exports = map[string]Signature{
	ExportDescribe: {nil, []api.ValueType{i32}},
	ExportCall:     {[]api.ValueType{i32, i32, i32, i32, i32, i64, i32, i32, i32, i32, i32, i32, i32}, []api.ValueType{i32}},
}

// Realloc is the type of the functions in [ExportRealloc] and [ImportRealloc]. Parameters:
// old pointer, old size, alignment, new size. Result: new pointer.
var Realloc = Signature{[]api.ValueType{i32, i32, i32, i32}, []api.ValueType{i32}}

// ImportModule returns the module name under which guests import an interface.
func ImportModule(iface string) string { return Package + "/" + iface + "@" + Version }
