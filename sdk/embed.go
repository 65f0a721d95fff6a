// Package sdk holds the files of the SDK for Go. The program copies them beside a new
// tool, so that its author needs no network and no published module path.
package sdk

import "embed"

// Go holds the packages that the author of a tool in Go imports, below "go". It also
// holds the tests of the SDK, which an author does not need.
//
//go:embed go/config go/digest go/exec go/filename go/http go/internal go/kv go/lines go/log go/progress go/search go/secrets go/tool
var Go embed.FS
