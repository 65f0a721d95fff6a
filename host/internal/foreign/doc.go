// Package foreign runs modules that others have made for other hosts, unchanged, and
// compares the results with those of their own runtimes: Extism's SDK for Go, and
// wazero's WASI.
//
// [Modules] lists them, with their source, a call and the expected result of each.
// TABLE.md has the results; a test makes it anew. No module is in this repository: those
// of Go modules come with go.sum, those of npm and PyPI through the clients of these
// registries, and each archive must have its SHA-256.
package foreign
