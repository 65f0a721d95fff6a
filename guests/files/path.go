package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/stockade-dev/stockade/guests/internal/pathname"
	"github.com/stockade-dev/stockade/sdk/go/filename"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

type location struct {
	abs string // cleaned, absolute path for opening the file
	rel string // path for people and models: relative inside the working directory, else absolute
}

// locate resolves a path argument; an empty path is the working directory. Nothing need be there,
// but a slash at the end of the path of an existing file is an error.
func locate(path string) (location, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return location{}, tool.IO("working directory: %w", err)
	}
	abs, err := pathname.Resolve(path, cwd)
	if err != nil {
		return location{}, err
	}
	l := locationOf(cwd, abs)
	if info, err := os.Stat(abs); endsInSlash(path) && err == nil && !info.IsDir() {
		return location{}, tool.Coded("NOT_A_DIRECTORY", tool.InvalidInput("%s is a file, and its path does not end in a slash: write %s", l.display(), l.display()))
	}
	return l, nil
}

func endsInSlash(path string) bool { return len(path) > 1 && strings.HasSuffix(path, "/") }

// checkCreate returns an error if the path of a new file ends in a slash.
func (l location) checkCreate(path string) error {
	if endsInSlash(path) {
		return tool.InvalidInput("path %q ends in a slash, as only the path of a directory does: write %s/NAME for a file in it, or %s; directories are made on the way", path, l.display(), l.display())
	}
	return nil
}

// locationOf returns the location of an absolute path, relative to cwd if it is inside.
func locationOf(cwd, abs string) location {
	rel, err := filepath.Rel(cwd, abs)
	if err != nil || !filepath.IsLocal(rel) {
		rel = abs
	}
	return location{abs, pathname.FromWASI(filepath.ToSlash(rel))}
}

func (l location) isInside() bool { return !filepath.IsAbs(filepath.FromSlash(l.rel)) }

func (l location) child(name string) location {
	c := location{abs: l.childPath(name), rel: l.rel + "/" + name}
	if l.rel == "." {
		c.rel = name
	} else if l.rel == "/" {
		c.rel = "/" + name
	}
	return c
}

func (l location) childPath(name string) string {
	return string(l.appendChild(make([]byte, 0, len(l.abs)+1+len(name)), name))
}

func (l location) appendChild(b []byte, name string) []byte {
	if b = append(b, l.abs...); !os.IsPathSeparator(l.abs[len(l.abs)-1]) { // the root
		b = append(b, os.PathSeparator)
	}
	return append(b, pathname.ToWASI(name)...)
}

// real returns the path after following symbolic links, as far as they can be resolved. Names of
// one existing file have the same real path, unless they are hard links.
func (l location) real() string {
	if path, err := filepath.EvalSymlinks(l.abs); err == nil {
		return path
	}
	dir, name := filepath.Split(l.abs)
	if dir, err := filepath.EvalSymlinks(dir); err == nil {
		return filepath.Join(dir, name)
	}
	return l.abs
}

// display returns the path as results and arguments write it.
func (l location) display() string { return filename.Show(l.rel) }

// toolError turns an error of package os into an error with advice.
func (l location) toolError(op string, err error) error {
	cause := err
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		cause = pathErr.Err // the message names the path once
	} else if linkErr, ok := errors.AsType[*os.LinkError](err); ok {
		cause = linkErr.Err
	}
	switch {
	case errors.Is(err, syscall.EACCES):
		return tool.IO("%s %s: permission denied: the host's own permissions forbid it, or it has several hard links and cannot be changed", op, l.display())
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return tool.Coded("NO_SPACE", tool.IO("%s %s: no room: the disk is full, or the call has written as much as one call may", op, l.display()))
	case tool.AsError(err).Code == tool.CodeDenied:
		return tool.Denied("%s %s: not permitted: the path is outside the granted directories, or needs more care than others", op, l.display())
	case errors.Is(err, fs.ErrNotExist):
		return tool.NotFound("%s %s: no such file or directory%s", op, l.display(), l.hint())
	case errors.Is(err, syscall.ENOTDIR):
		return tool.Coded("NOT_A_DIRECTORY", tool.InvalidInput("%s %s: a part of the path is a file, not a directory", op, l.display()))
	case errors.Is(err, syscall.EISDIR):
		return tool.Coded("NOT_A_FILE", tool.InvalidInput("%s %s: is a directory", op, l.display()))
	case errors.Is(err, syscall.EROFS):
		return tool.Denied("%s %s: the directory is granted read-only", op, l.display())
	case errors.Is(err, syscall.ELOOP):
		return tool.IO("%s %s: too many symbolic links", op, l.display())
	}
	return tool.IO("%s %s: %w", op, l.display(), cause)
}

// notAFile returns the error of a directory, pipe or device, which has no content to read or
// write.
func (l location) notAFile(op string, info fs.FileInfo) error {
	what := "neither a file nor a directory, but a pipe or a device for example, which no tool opens"
	if info.IsDir() {
		what = "a directory; ls lists it"
	}
	return tool.Coded("NOT_A_FILE", tool.InvalidInput("%s %s: is %s", op, l.display(), what))
}

func (l location) checkDir(op string) error {
	info, err := os.Stat(l.abs)
	what := "a file, not a directory; file_read shows it"
	switch {
	case err != nil:
		return l.toolError(op, err)
	case info.IsDir():
		return nil
	case !isFile(info):
		what = "neither a file nor a directory, but a pipe or a device for example, which no tool opens"
	}
	return tool.Coded("NOT_A_DIRECTORY", tool.InvalidInput("%s %s: is %s", op, l.display(), what))
}

// hint returns the end of an error about a path that does not exist: the probable reason, or
// paths that may have been meant. It is empty if neither is known.
func (l location) hint() string {
	if target, err := os.Readlink(l.abs); err == nil {
		return "; it is a symbolic link to " + filename.Show(target) + ", where nothing is"
	}
	if strings.ContainsAny(l.rel, "*?{") {
		return "; a path holds no pattern: glob finds files by one"
	}
	dir, name := filepath.Split(l.abs)
	name = pathname.FromWASI(name)
	if entries, err := os.ReadDir(dir); err == nil {
		var names []string
		for _, entry := range entries {
			names = append(names, pathname.FromWASI(entry.Name()))
		}
		var near []string
		for _, found := range nearby(name, names) {
			near = append(near, filename.Show(strings.TrimSuffix(l.rel, name)+found))
		}
		if len(near) > 0 {
			return "; did you mean " + strings.Join(near, " or ") + "?"
		}
		if l.isInside() {
			return ""
		}
	} else if l.isInside() {
		return "; its directory does not exist either"
	}
	return "; outside the working directory only granted directories exist"
}

// ensureToolError is [location.toolError] for a [*fs.PathError]. Other errors, which may already
// have advice, stay as they are, and nil stays nil.
func (l location) ensureToolError(op string, err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); !ok {
		return err
	}
	return l.toolError(op, err)
}
