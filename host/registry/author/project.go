package author

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/sdk"
)

//go:embed project
var projectFiles embed.FS

const (
	goVersion = "1.26.7" // the Go version that the SDK needs, as in our own go.mod
	sdkModule = "github.com/stockade-dev/stockade"
	sdkFolder = "stockade-sdk" // the folder of a project that holds the SDK
)

// nameRE is stricter than tool.ValidName: the name is also that of a folder, the end of a Go
// module path, and a part of a repository name in a registry.
var nameRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9]*([_-][a-z0-9]+)*$`) })

// devices matches device names of Windows, which no folder there and no Go module can have.
var devices = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`) })

// maxName limits the name of a module in bytes; a longer one is refused.
const maxName = 40

// NameError is returned when a project cannot have a name; Why is the reason.
type NameError struct{ Name, Why string }

func (e *NameError) Error() string { return fmt.Sprintf("name %.80q: %s", e.Name, e.Why) }

// CheckName returns a *[NameError] if a module of tools cannot have the name.
func CheckName(name string) error {
	switch {
	case len(name) > maxName:
		return &NameError{name, fmt.Sprintf("more than %d characters; tools are offered as NAME_tool", maxName)}
	case !nameRE().MatchString(name):
		return &NameError{name, "it is not lower-case letters and digits, the first a letter, with single '-' or '_' between them"}
	case devices().MatchString(name):
		return &NameError{name, "it is a device on Windows"}
	}
	return nil
}

// ErrNotEmpty is returned when the folder for a new project is not empty.
var ErrNotEmpty = errors.New("there is something in it already")

// CreateProject writes a project into the folder dir, which must be missing or empty. It
// overwrites nothing. If it fails, files that it has written stay.
func CreateProject(dir, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("make a project in %s: %w", dir, ErrNotEmpty)
	}
	words := strings.NewReplacer("NAME", name, "GOVERSION", goVersion)
	err = copyTree(projectFiles, "project", func(file string, content []byte) error {
		file = strings.TrimSuffix(file, ".in")
		if file == "gitignore" {
			file = ".gitignore" // go:embed leaves out files whose names begin with a dot
		}
		return create(dir, file, []byte(words.Replace(string(content))))
	})
	if err != nil {
		return err
	}
	if err := create(dir, path.Join(sdkFolder, "go.mod"), []byte("module "+sdkModule+"\n\ngo "+goVersion+"\n")); err != nil {
		return err
	}
	return copyTree(sdk.Go, "go", func(file string, content []byte) error {
		if strings.HasSuffix(file, "_test.go") {
			return nil // tests of the SDK need modules that a tool does not need
		}
		return create(dir, path.Join(sdkFolder, "sdk", "go", file), content)
	})
}

// copyTree calls do with each file of a tree. The names are relative to root.
func copyTree(tree fs.FS, root string, do func(file string, content []byte) error) error {
	return fs.WalkDir(tree, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return do(strings.TrimPrefix(name, root+"/"), content)
	})
}

// create writes a new file in the folder dir. It is an error if the file exists.
func create(dir, file string, content []byte) error {
	name := filepath.Join(dir, filepath.FromSlash(file))
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// Language returns the programming language of the files in a folder; empty: unknown.
func Language(dir string) string {
	for _, l := range []struct{ file, language string }{{"go.mod", "Go"}, {"Cargo.toml", "Rust"}, {"package.json", "JavaScript"}, {"pyproject.toml", "Python"}, {"build.zig", "Zig"}} {
		if _, err := os.Stat(filepath.Join(dir, l.file)); err == nil {
			return l.language
		}
	}
	return ""
}
