package paths

import (
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/sdk/go/filename"
)

// Clean is the path that an argument names, and whether the words alone
// tell which that is: ".." after a symbolic link leads elsewhere than it reads, and some
// tools do not read the form of package filename.
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

// isAbs takes a path of Windows too, with slashes.
func isAbs(s string) bool {
	return strings.HasPrefix(s, "/") || len(s) > 2 && s[1] == ':' && s[2] == '/' && (s[0]|0x20) >= 'a' && (s[0]|0x20) <= 'z'
}

// Absolute is the path of the host that a name leads to from a directory, clean.
func Absolute(name, cwd string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(cwd, name)
}

// Guest is a path of the host as a guest has it, with slashes. Those are the
// names of special paths.
func Guest(host string) string { return path.Clean("/" + filepath.ToSlash(host)) }

// In reports whether a path of the host is a directory or in it, by its name.
func In(host, dir string) bool {
	host, dir = Guest(host), Guest(dir)
	return host == dir || strings.HasPrefix(host, strings.TrimSuffix(dir, "/")+"/")
}

// SystemDirs are where a system shows its kernel and every process. No guest sees
// them, whatever is mounted; what is mounted inside of one can be ordinary.
func SystemDirs() []string {
	if runtime.GOOS == "windows" {
		return nil
	}
	return []string{"/proc", "/sys", "/dev"}
}
