// Package pathname resolves an argument of a tool that names a file. It refuses a path in the
// form of a shell, of Windows or of a browser, and the error shows the path to write instead.
// If a file of exactly that name exists, the path is accepted.
package pathname

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/filename"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// FromWASI converts a path of WASI into a path of the host.
func FromWASI(path string) string {
	if runtime.GOOS == "wasip1" {
		path = filename.Parse(path)
	}
	return path
}

// ToWASI converts a path of the host into the path to open.
func ToWASI(path string) string {
	if runtime.GOOS == "wasip1" {
		path = filename.UTF8(path)
	}
	return path
}

// Resolve returns the absolute path to open for an argument. Relative paths start in cwd.
func Resolve(arg, cwd string) (string, error) {
	name := ToWASI(filename.Parse(arg))
	if strings.ContainsRune(name, 0) {
		return "", tool.InvalidInput("path %q holds a NUL byte", name)
	}
	abs := func(name string) string {
		if name = filepath.FromSlash(name); !filepath.IsAbs(name) {
			name = filepath.Join(cwd, name)
		}
		return filepath.Clean(name)
	}
	isThere := func(name string) bool { _, err := os.Lstat(abs(name)); return err == nil }
	if filename.Parse(arg) != arg || isThere(name) {
		return abs(name), nil
	}
	plain := strings.TrimSpace(name)
	slashed := strings.ReplaceAll(plain, `\`, "/")
	first, rest, more := strings.Cut(slashed, "/")
	isVariable := first != "" && strings.Contains("$%", first[:1]) && first == strings.ToUpper(first) && first != strings.ToLower(first)
	why, write := "", slashed // what is wrong with the argument, and the path to write instead
	switch {
	case len(plain) > 1 && strings.Contains("\"'`", plain[:1]) && strings.HasSuffix(plain, plain[:1]):
		why, write = "is in quotation marks", plain[1:len(plain)-1]
		if text, err := strconv.Unquote(plain); err == nil {
			write = text
		}
	case first == "file:" && more:
		why, write = "is a URL", "/"+strings.TrimLeft(strings.TrimPrefix(rest, "/localhost"), "/")
		if text, err := strconv.Unquote(`"` + strings.ReplaceAll(write, "%", `\x`) + `"`); err == nil {
			write = text
		}
	case (first == "~" || isVariable || more && strings.HasPrefix(first, "~")) && !isThere(first):
		why, write = "begins with "+first+", which no tool expands (./ in front means a directory of that name)", strings.TrimLeft(rest, "/")
		dirs := strings.Split(cwd, "/")
		isHome := first == "~" || strings.Contains(first, "HOME") || strings.Contains(first, "USERPROFILE")
		if isHome && len(dirs) > 2 && (dirs[1] == "home" || dirs[1] == "Users") {
			write = path.Join("/", dirs[1], dirs[2], write)
		}
	case len(first) == 2 && first[1] == ':' && more:
		why, write = "is one of Windows, and there are no drives", path.Base(slashed)
	case slashed != name:
		why = "has backslashes or white space around it"
	default:
		return abs(name), nil
	}
	write = filename.Show(cmp.Or(write, "."))
	if _, err := Resolve(write, cwd); err != nil {
		return "", err
	}
	return "", tool.InvalidInput("path %q %s: write %s; relative paths begin in %s", arg, why, write, filename.Show(cwd))
}
