// Package author makes new tools: their project, their build, their tests, and the manifest
// in their module.
//
// [CreateProject] writes a project: a Go module with one tool, its tests, and the SDK beside
// it. [Build] compiles a project with the author's toolchain. [Pack] finishes a module in any
// language: it puts the manifest into a custom section, and refuses a module that imports
// more than its tools ask for. [ParseScript] reads a file of tests, and [Script.Run] runs it:
// each call goes through a session that the caller opens, with the files, hosts, secrets and
// recorded answers of the file.
package author
