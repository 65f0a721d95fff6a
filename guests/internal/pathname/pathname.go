// Package pathname reads the argument of a tool that names a file. What a shell, Windows or a
// browser would make a path of is refused with the path to write, unless a file is called so.
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

// Raw is a path as the host has it, of one that WASI has.
func Raw(path string) string {
	if runtime.GOOS == "wasip1" {
		path = filename.Parse(path)
	}
	return path
}

// Open is a path to be opened, of one that the host has.
func Open(path string) string {
	if runtime.GOOS == "wasip1" {
		path = filename.UTF8(path)
	}
	return path
}

// Read is the absolute path that an argument names from the directory cwd, to be opened.
func Read(arg, cwd string) (string, error) {
	name := Open(filename.Parse(arg))
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
	plain := strings.Trim(name, " \t\r\n")
	quoted := len(plain) > 1 && strings.ContainsRune("\"'`", rune(plain[0])) && plain[len(plain)-1] == plain[0]
	slashed := strings.ReplaceAll(plain, `\`, "/")
	first, rest, more := strings.Cut(slashed, "/")
	variable := first != "" && strings.ContainsRune("$%", rune(first[0])) && first == strings.ToUpper(first) && first != strings.ToLower(first)
	why, write := "", ""
	switch {
	case quoted:
		why, write = "is in quotation marks", plain[1:len(plain)-1]
		if text, err := strconv.Unquote(plain); err == nil && plain[0] == '"' {
			write = text
		}
	case first == "file:" && more:
		why, write = "is a URL", "/"+strings.TrimLeft(strings.TrimPrefix(rest, "/localhost"), "/")
		if text, err := strconv.Unquote(`"` + strings.ReplaceAll(write, "%", `\x`) + `"`); err == nil {
			write = text
		}
	case first == "~", strings.HasPrefix(first, "~") && more, variable && !isThere(first):
		why, write = "begins with "+first+", which no tool expands (./ in front means a directory of that name)", strings.TrimLeft(rest, "/")
		dirs := strings.SplitAfterN(cwd, "/", 4) // the first is the root
		if first == "~" || strings.Contains(first, "HOME") || strings.Contains(first, "USERPROFILE") {
			if len(dirs) > 2 && (dirs[1] == "home/" || dirs[1] == "Users/") {
				write = path.Join("/", dirs[1], dirs[2], write)
			}
		}
	case len(first) == 2 && first[1] == ':' && more:
		why, write = "is one of Windows, and there are no drives", path.Base(slashed)
	case slashed != name:
		why, write = "has backslashes or white space around it", slashed
	}
	if why == "" || filename.Parse(arg) != arg || isThere(name) || strings.HasPrefix(first, "~") && isThere(first) {
		return abs(name), nil
	}
	write = filename.Show(cmp.Or(write, "."))
	if _, err := Read(write, cwd); err != nil {
		return "", err
	}
	return "", tool.InvalidInput("path %q %s: write %s; relative paths begin in %s", arg, why, write, filename.Show(cwd))
}
