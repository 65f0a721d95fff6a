package paths

import (
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/sdk/go/filename"
)

// Clean returns the clean absolute path that an argument names. sure is false if its text is
// not enough: ".." after a symbolic link leads elsewhere than it reads, and some tools do not
// parse the form of package filename. name is empty if the argument is no path.
func Clean(arg, cwd string) (name string, sure bool) {
	if strings.ContainsRune(arg, 0) || !utf8.ValidString(arg) {
		return "", false
	}
	arg, cwd = filepath.ToSlash(arg), filepath.ToSlash(cwd)
	sure = filename.Parse(arg) == arg
	for seg := range strings.SplitSeq(arg, "/") {
		sure = sure && seg != ".."
	}
	if !isAbs(arg) {
		arg = cwd + "/" + arg
	}
	return path.Clean(arg), sure
}

// isAbs reports whether a path with slashes is absolute, even in the form of Windows.
func isAbs(s string) bool {
	return strings.HasPrefix(s, "/") || len(s) > 2 && s[1] == ':' && s[2] == '/' && (s[0]|0x20) >= 'a' && (s[0]|0x20) <= 'z'
}

// Absolute returns the clean host path of a name, which may be relative to cwd.
func Absolute(name, cwd string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(cwd, name)
}

// Guest returns a host path in the form that guests see, with slashes. Special paths have this
// form.
func Guest(host string) string { return path.Clean("/" + filepath.ToSlash(host)) }

// In reports whether a host path is a directory or inside that directory, going by its name.
func In(host, dir string) bool {
	host, dir = Guest(host), Guest(dir)
	return host == dir || strings.HasPrefix(host, strings.TrimSuffix(dir, "/")+"/")
}

// SystemDirs returns the directories of the kernel and its processes. No guest sees them,
// even inside a mount. A mount inside one of them can be an ordinary directory.
func SystemDirs() []string {
	if runtime.GOOS == "windows" {
		return nil
	}
	return []string{"/proc", "/sys", "/dev"}
}
