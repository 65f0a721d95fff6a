// Package pathname reads the argument of a tool that names a file. What a shell, Windows or a
// browser would make a path of is refused with the path to write, unless a file is called so.
package pathname

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/filename"
	"github.com/stockade-dev/stockade/sdk/go/search"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// Raw is a name or path as the system of the host has it, of one that WASI has.
func Raw(path string) string {
	if runtime.GOOS != "wasip1" {
		return path
	}
	return filename.Parse(path)
}

// Open is a path to be opened, of one as the system of the host has it.
func Open(path string) string {
	if runtime.GOOS != "wasip1" {
		return path
	}
	return filename.UTF8(path)
}

// Entries makes the names of a listing those that the system of the host has.
func Entries(l search.Listing) search.Listing {
	for i := range l {
		l[i].Name = Raw(l[i].Name)
	}
	return l
}

// Read is the absolute path that an argument names from the directory cwd.
func Read(arg, cwd string) (string, error) {
	name := Open(filename.Parse(arg))
	if strings.ContainsRune(name, 0) {
		return "", tool.InvalidInput("path %q holds a NUL byte", name)
	}
	abs := func(path string) string {
		if path = filepath.FromSlash(path); !filepath.IsAbs(path) {
			path = filepath.Join(cwd, path)
		}
		return filepath.Clean(path)
	}
	isThere := func(path string) bool { _, err := os.Lstat(abs(path)); return err == nil }
	why, write := "", ""
	end := len(name) - 1
	switch first, rest := cut(name); {
	case strings.TrimSpace(name) != name:
		why, write = "begins or ends with white space", strings.TrimSpace(name)
	case end > 0 && name[0] == name[end] && strings.ContainsRune("\"'`", rune(name[0])):
		why, write = "is in quotation marks", name[1:end]
		if plain, err := strconv.Unquote(name); err == nil && name[0] == '"' {
			write = plain
		}
	case strings.HasPrefix(name, "file:/"):
		why = "is a URL"
		write = "/" + strings.TrimLeft(strings.TrimPrefix(name[len("file:"):], "//localhost"), "/")
		if plain, err := strconv.Unquote(`"` + strings.ReplaceAll(write, "%", `\x`) + `"`); err == nil {
			write = plain
		}
	case len(first) == 2 && first[1] == ':' && rest != "":
		why, write = "is a path of Windows, and there are no drives", name[strings.LastIndexAny(name, `/\`)+1:]
	case first == "~", strings.HasPrefix(first, "~") && rest != "", isVariable(first):
		if isThere(first) {
			break
		}
		why, write = "begins with "+first+", which no tool expands (./ in front means a directory of that name)", strings.TrimLeft(strings.ReplaceAll(rest, `\`, "/"), "/")
		dirs := strings.SplitAfterN(cwd, "/", 4) // the first is the root
		if isHome := slices.Contains([]string{"~", "$HOME", "${HOME}", "%USERPROFILE%"}, first); isHome && len(dirs) > 2 && (dirs[1] == "home/" || dirs[1] == "Users/") {
			write = path.Join("/", dirs[1], dirs[2], write)
		}
	case strings.Contains(name, `\`):
		why, write = "has backslashes", strings.ReplaceAll(name, `\`, "/")
	}
	if why == "" || filename.Parse(arg) != arg || isThere(name) {
		return abs(name), nil
	}
	write = filename.Show(cmp.Or(write, "."))
	if _, err := Read(write, cwd); err != nil {
		return "", err
	}
	return "", tool.InvalidInput("path %q %s: write %s; relative paths begin in %s", arg, why, write, filename.Show(cwd))
}

// cut splits a path behind its first name.
func cut(name string) (first, rest string) {
	if i := strings.IndexAny(name, `/\`); i >= 0 {
		return name[:i], name[i:]
	}
	return name, ""
}

// isVariable reports whether a name is one of the environment, as a shell or Windows has it.
func isVariable(name string) bool {
	bare, dollar := strings.CutPrefix(name, "$")
	switch {
	case dollar:
		bare = strings.TrimSuffix(strings.TrimPrefix(bare, "{"), "}")
	case len(name) > 2 && name[0] == '%' && strings.HasSuffix(name, "%"):
		bare = name[1 : len(name)-1]
	default:
		return false
	}
	return bare != "" && strings.Trim(bare, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}
