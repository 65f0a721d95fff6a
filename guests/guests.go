// Package guests holds the built tool modules that ship inside the binary.
//
// The sources are the directories beside this file; each is a Go program that
// the build turns into dist/<name>.wasm with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags="-s -w"
//
// Beside them lies what the build has compiled them to, for the platform on
// which it ran:
//
//	native/<GOOS>_<GOARCH>/<digest of the module>/...
//
// The built files are not committed. The package compiles without them; a
// binary made that way has no built-in tools. One that is made for another
// platform has no native code, and compiles its tools when they are first
// called.
package guests

import (
	"embed"
	"encoding/json"
	"io/fs"
	"path"
	"runtime"
)

// FS holds the directory dist: one *.wasm file for each built module, and the
// index, which lists them.
//
//go:embed all:dist
var FS embed.FS

// IndexFile is the list of the modules in dist: a JSON array of [Module].
const IndexFile = "index.json"

// Module is one entry of the index, so that the tools can be listed without
// touching WebAssembly.
type Module struct {
	File     string          `json:"file"`
	Digest   string          `json:"digest"` // sha256 in hex
	Bytes    int64           `json:"bytes"`
	Manifest json.RawMessage `json:"manifest"`
}

// Read returns the module itself.
func (m Module) Read() ([]byte, error) { return FS.ReadFile("dist/" + m.File) }

// Built reports whether the modules were built before the program.
func Built() bool {
	_, err := fs.Stat(FS, "dist/"+IndexFile)
	return err == nil
}

// ReadIndex reads the list of the built modules into a slice of [Module], or of what decodes
// the manifests, too. Its error is fs.ErrNotExist when none were built.
func ReadIndex(list any) error {
	data, err := FS.ReadFile("dist/" + IndexFile)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, list)
}

// NativeDir is the directory for native code of the platform of this program.
// There is none where such code is not embedded.
func NativeDir() string { return "native/" + runtime.GOOS + "_" + runtime.GOARCH }

// Native returns the directory with the native code of a module, nil if there
// is none.
func Native(digest string) fs.FS {
	dir := path.Join(NativeDir(), digest)
	if _, err := fs.Stat(native, dir); err != nil {
		return nil
	}
	sub, err := fs.Sub(native, dir)
	if err != nil {
		return nil
	}
	return sub
}
