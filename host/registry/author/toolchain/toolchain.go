// Package toolchain runs the Go toolchain of an author, to build a module.
//
// It starts a process outside of the jail: the code to compile is the author's own, on the
// author's machine, with the author's caches. The toolchain is found at fixed places, or
// where the person says. PATH and GOROOT are ignored, as a folder can set them for
// everybody who enters it. The build runs none of the code, has no C compiler, and
// downloads nothing: a module that is not there yet is an error.
package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/version"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrNoGo is returned when no Go toolchain was found.
var ErrNoGo = errors.New("find Go: it is in none of the usual places")

// goPaths are the paths that [Find] tries, in this order. After them it tries the
// toolchains below ~/sdk, which `go install golang.org/dl/...` makes, the newest first.
var goPaths = []string{
	"/usr/local/go/bin/go", "/usr/local/bin/go", "/usr/bin/go", "/usr/lib/go/bin/go", "/usr/lib/golang/bin/go",
	"/opt/homebrew/bin/go", "/snap/bin/go", `C:\Program Files\Go\bin\go.exe`,
}

// Find returns the path of the command go. home is the home directory of the account, an
// absolute path; empty: unknown. The error is [ErrNoGo].
func Find(home string) (string, error) {
	places := goPaths
	if filepath.IsAbs(home) {
		below, _ := fs.Glob(os.DirFS(home), "sdk/go*/bin/go") // only a bad pattern is an error
		slices.SortFunc(below, func(a, b string) int { return version.Compare(release(b), release(a)) })
		places = slices.Clone(places)
		for _, name := range below {
			places = append(places, filepath.Join(home, filepath.FromSlash(name)))
		}
	}
	for _, place := range places {
		if st, err := os.Stat(place); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return place, nil
		}
	}
	return "", ErrNoGo
}

// release returns the name of a toolchain's folder, which is its version.
func release(place string) string { return path.Base(path.Dir(path.Dir(place))) }

// Build describes the build of a package.
type Build struct {
	Go  string // the command, absolute
	Dir string // the folder of the package, absolute
	Out string // the file to which the module is written, absolute
	// Env returns the value of an environment variable. Only the passed variables are read,
	// which hold the places of the toolchain's caches.
	Env func(string) string
}

// passedEnv are the variables that we pass to the toolchain: the places of its caches. A
// variable that changes the result of a build, such as GOFLAGS, is not among them.
var passedEnv = []string{"HOME", "TMPDIR", "GOCACHE", "GOMODCACHE", "GOPATH", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE", "SystemRoot", "TEMP"}

// Error is returned when the toolchain has failed to build.
type Error struct {
	Output string // output of the toolchain, its first 64 KiB
	Err    error
}

func (e *Error) Error() string { return "go build: " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

const maxOutput = 64 << 10

// Run builds a package as a module of the native ABI: a reactor, without symbols or paths
// of this machine, so that two builds of the same code are equal. The error of a failed
// build is an [*Error].
func (b Build) Run(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, b.Go, "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", b.Out, ".")
	cmd.Dir = b.Dir
	cmd.Env = []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOWORK=off", "GOENV=off", "GOFLAGS=", "GOPROXY=off", "GOTELEMETRY=off", "PWD=" + b.Dir}
	for _, name := range passedEnv {
		if value := b.Env(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // lets go remove its temporary files
	cmd.WaitDelay = 5 * time.Second
	var out boundedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		return nil
	}
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		return fmt.Errorf("start %s: %w", b.Go, err)
	}
	return &Error{Output: strings.TrimRight(out.buf.String(), "\n"), Err: err}
}

// boundedBuffer keeps the first maxOutput bytes and drops the rest. It does not embed the
// buffer, whose other methods would bypass the limit.
type boundedBuffer struct{ buf bytes.Buffer }

func (l *boundedBuffer) Write(p []byte) (int, error) {
	if room := maxOutput - l.buf.Len(); room > 0 {
		l.buf.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}
