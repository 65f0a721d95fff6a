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
	// ExportWarm may do what every call does, on data of its own, so that the
	// memory with which calls begin is ready for it. It is optional.
	ExportWarm = "stockade:warm"
)

// The exports through which the host allocates in the guest, by preference.
var (
	ExportRealloc = []string{"cabi_export_realloc", "cabi_realloc"} // for arguments of exports
	ImportRealloc = []string{"cabi_import_realloc", "cabi_realloc"} // for results of imports
)

// Signature is the core type of a lowered function.
type Signature struct {
	Params, Results []api.ValueType
}

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// Exports are the lowered types of the functions that a module has to export.
var Exports = map[string]Signature{
	ExportDescribe: {nil, []api.ValueType{i32}},
	ExportCall:     {[]api.ValueType{i32, i32, i32, i32, i32, i64, i32, i32, i32, i32, i32, i32, i32}, []api.ValueType{i32}},
}

// Realloc is the type of those in [ExportRealloc] and [ImportRealloc]: old
// pointer, old size, alignment, new size; the new pointer.
var Realloc = Signature{[]api.ValueType{i32, i32, i32, i32}, []api.ValueType{i32}}

// ImportModule is the name under which a module imports an interface.
func ImportModule(iface string) string { return Package + "/" + iface + "@" + Version }
