// Package guests holds the built tool modules that ship inside the binary.
//
// The sources are the directories beside this file; each is a Go program that
// the build turns into dist/<name>.wasm with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags="-s -w"
//
// The built files are not committed. The package compiles without them; a
// binary made that way has no built-in tools.
package guests

import "embed"

// FS holds the directory dist: one *.wasm file for each built module, and
// whatever the build puts beside them.
//
//go:embed all:dist
var FS embed.FS
