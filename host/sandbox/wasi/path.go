package wasi

import (
	"path"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/sdk/go/filename"
)

// MaxPath limits the bytes of a name; a longer one is ENAMETOOLONG.
const MaxPath = 4096

// clean returns the absolute form of a guest's name, decoded by [filename.Parse]; a relative one
// starts at "/". dir is set if the name ends in a slash, or in "." or ".." as a name of its own,
// so that it can only be the name of a directory.
func clean(p string) (_ string, dir bool, _ Errno) {
	switch {
	case p == "":
		return "", false, EINVAL
	case len(p) > MaxPath:
		return "", false, ENAMETOOLONG
	case !utf8.ValidString(p):
		return "", false, EILSEQ
	}
	if p = filename.Parse(p); strings.IndexByte(p, 0) >= 0 {
		return "", false, EINVAL
	}
	if strings.Contains(p, "..") && climbs(p) {
		return "", false, errOutside
	}
	last := p[strings.LastIndexByte(p, '/')+1:]
	if p[0] != '/' {
		p = "/" + p
	}
	return path.Clean(p), last == "" || last == "." || last == "..", 0
}

// isName reports whether a text can be the name of an entry of a directory.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00") && utf8.ValidString(name)
}

// JoinBelow returns the name of the file p, a name relative to an open directory whose name is
// dir. The names are joined as text: if the directory was moved since it was opened, the
// result still leads to its old place, and to whatever is there now, with the rights that
// apply there. It is EPERM if p is absolute or leads above dir, and EINVAL if p is empty.
func JoinBelow(dir, p string) (string, Errno) {
	switch {
	case p == "":
		return "", EINVAL
	case p[0] == '/' || strings.Contains(p, "..") && climbs(p):
		return "", errOutside
	}
	return dir + "/" + p, 0
}

// climbs reports whether p leads above "/" at any point. path.Clean would stay at "/" instead,
// which hides an attempt.
func climbs(p string) bool {
	depth := 0
	for name := range strings.SplitSeq(p, "/") {
		switch name {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return true
			}
		default:
			depth++
		}
	}
	return false
}

// hasHostSyntax reports whether a name inside a mount has a character that only the host gives
// a meaning: on Windows a separator, a stream or a device.
func hasHostSyntax(rel string) bool {
	return runtime.GOOS == "windows" && strings.ContainsAny(rel, `\:?*"<>|`)
}

// relativeTo returns the path of p relative to dir ("." for dir itself), and whether p is dir
// or inside; both are clean and absolute.
func relativeTo(dir, p string) (string, bool) {
	switch {
	case p == dir:
		return ".", true
	case dir == "/":
		return p[1:], true
	case len(p) > len(dir) && p[len(dir)] == '/' && p[:len(dir)] == dir:
		return p[len(dir)+1:], true
	}
	return "", false
}

// join is the reverse of relativeTo.
func join(dir, rel string) string {
	switch {
	case rel == ".":
		return dir
	case dir == "/":
		return "/" + rel
	}
	return dir + "/" + rel
}
