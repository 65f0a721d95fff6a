// Package author makes new tools: the project of one, its build, its tests, and the
// manifest in its module.
//
// [CreateProject] writes a project: a Go module with one tool, its tests, and the SDK beside
// it. [Build] compiles one with the author's toolchain. [Pack] finishes a module,
// of whatever language: it puts the manifest into a custom section, and refuses a
// module that imports more than its tools ask for. [ParseScript] reads a file of
// tests, and [Script.Run] runs it: each call goes through whatever the caller opens
// for it, with the files, hosts, secrets and recorded answers of the file.
package author
