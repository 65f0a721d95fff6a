// Package pathname reads the argument of a tool that names a file. What a shell, Windows or a
// browser would make a path of is refused with the path to write, unless a file is called so.
package pathname

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/filename"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

var (
	expands = regexp.MustCompile(`^(~[\w.-]*|\$\{?[A-Z_][A-Z0-9_]*\}?|%\w+%)([/\\].*)?$`)
	drive   = regexp.MustCompile(`^[A-Za-z]:[/\\]`)
	aHome   = regexp.MustCompile(`^(/root|/home/[^/]+|/Users/[^/]+)(/|$)`)
	isHome  = regexp.MustCompile(`^(~|\$\{?HOME\}?|(?i:%USERPROFILE%))$`)
)

// Read is the absolute path that an argument names from the directory cwd.
func Read(arg, cwd string) (string, error) {
	path := filename.Parse(arg)
	if strings.ContainsRune(path, 0) {
		return "", tool.InvalidInput("path %q holds a NUL byte", path)
	}
	abs := func(path string) string {
		if path = filepath.FromSlash(path); !filepath.IsAbs(path) {
			path = filepath.Join(cwd, path)
		}
		return filepath.Clean(path)
	}
	exists := func(path string) bool { _, err := os.Lstat(abs(path)); return err == nil }
	why, write := "", ""
	end := len(path) - 1
	switch m := expands.FindStringSubmatch(path); {
	case strings.TrimSpace(path) != path:
		why, write = "begins or ends with white space", strings.TrimSpace(path)
	case end > 0 && path[0] == path[end] && strings.ContainsRune("\"'`", rune(path[0])):
		why, write = "is in quotation marks", path[1:end]
		if name, err := strconv.Unquote(path); err == nil && path[0] == '"' {
			write = filename.Show(name)
		}
	case strings.HasPrefix(path, "file:/"):
		why = "is a URL"
		write = "/" + strings.TrimLeft(strings.TrimPrefix(path[len("file:"):], "//localhost"), "/")
		if plain, err := strconv.Unquote(`"` + strings.ReplaceAll(write, "%", `\x`) + `"`); err == nil {
			write = filename.Show(plain)
		}
	case drive.MatchString(path):
		why, write = "is a path of Windows, and there are no drives", path[strings.LastIndexAny(path, `/\`)+1:]
	case m != nil && (m[2] != "" || m[1][0] != '~' || m[1] == "~"):
		if exists(m[1]) {
			break
		}
		rest := strings.TrimLeft(strings.ReplaceAll(m[2], `\`, "/"), "/")
		why, write = "begins with "+m[1]+", which no tool expands", rest
		if home := aHome.FindStringSubmatch(cwd); isHome.MatchString(m[1]) && home != nil {
			write = strings.TrimSuffix(home[1]+"/"+rest, "/")
		}
	case strings.Contains(path, `\`):
		why, write = "has backslashes", strings.ReplaceAll(path, `\`, "/")
	}
	if why == "" || exists(path) {
		return abs(path), nil
	}
	if write == "" {
		write = "."
	}
	if _, err := Read(write, cwd); err != nil {
		return "", err
	}
	return "", tool.InvalidInput("path %q %s: write %s (relative paths begin in %s; ./ in front takes a name as it is)", arg, why, write, filename.Show(cwd))
}
