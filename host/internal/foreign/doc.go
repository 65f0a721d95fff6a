// Package foreign runs modules that others have made for other hosts, as they come, and
// holds what comes of it against their own runtime: Extism's SDK for Go, and wazero's
// WASI.
//
// [Modules] lists them, with where each is from, what is asked of it and what has to come
// of that. TABLE.md is what came; a test makes it anew. None of them is in this
// repository: those of Go modules come with go.sum, those of npm and PyPI through the
// clients of these registries, and each archive is held against its SHA-256.
package foreign
