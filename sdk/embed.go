// Package sdk holds the SDK for Go as files, so that the program can lay it beside
// a new tool: an author needs no network and no published module path.
package sdk

import "embed"

// Go is what the author of a tool in Go imports, below "go". It has the tests of
// the SDK too, which nobody else needs.
//
//go:embed go/config go/digest go/exec go/filename go/http go/internal go/kv go/lines go/log go/progress go/search go/secrets go/tool
var Go embed.FS
