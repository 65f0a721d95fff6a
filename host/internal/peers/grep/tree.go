//go:build bench

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
)

const (
	// files is the number of files in a tree, without .gitignore files and go.mod.
	files = 20_000
	// ignoredShare makes .gitignore exclude one file in that many.
	ignoredShare = 20
	// smallBytes is the size of each file of the small tree.
	smallBytes = 1 << 10
	// smallDir is the number of small files in a directory.
	smallDir = 100
	// binaryProbe is the offset up to which a NUL makes a file binary for our tool. For
	// ripgrep a NUL anywhere does, so files with a later NUL are left out.
	binaryProbe = 8000
)

// makeSource makes a source tree, unless it exists: the source of Go, repeated until
// there are enough files, with .gitignore files at the top and in every tenth directory,
// and files that they exclude.
func makeSource(dir string) error {
	return makeTree(dir, func(t *tree) error {
		if err := t.put(".gitignore", []byte("*.log\nbuild/\n/vendor/\n*.o\n.DS_Store\n")); err != nil {
			return err
		}
		return t.fill(t.copy)
	})
}

// makeSmall makes a tree of files of one KiB, which are pieces of the source of Go,
// unless it exists.
func makeSmall(dir string) error {
	return makeTree(dir, func(t *tree) error { return t.fill(t.cutPieces) })
}

func makeTree(dir string, fill func(*tree) error) error {
	mark := filepath.Join(dir, ".git", "made")
	want := fmt.Sprintf("%d files of %s\n", files, runtime.Version())
	if have, err := os.ReadFile(mark); err == nil && string(have) == want {
		return nil
	}
	bench.Progress("make %s", dir)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	t := &tree{dir: dir}
	// The tree is inside of this module, and must not be a part of it.
	if err := t.put("go.mod", []byte("module tree\n")); err != nil {
		return err
	}
	if err := fill(t); err != nil {
		return err
	}
	return t.put(".git/made", []byte(want))
}

type tree struct {
	dir        string
	made, dirs int
}

// fill calls take with the source of Go until there are enough files.
func (t *tree) fill(take func(to, from string) error) error {
	for n := 0; t.made < files; n++ {
		if err := take("part"+strconv.Itoa(n), filepath.Join(runtime.GOROOT(), "src")); err != nil {
			return err
		}
	}
	return nil
}

// cutPieces makes files from pieces of all files below from.
func (t *tree) cutPieces(to, from string) error {
	return filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil || bytes.IndexByte(data, 0) >= 0 {
			return err
		}
		for ; len(data) >= smallBytes; data = data[smallBytes:] {
			if t.made == files {
				return filepath.SkipAll
			}
			piece := fmt.Sprintf("%03d/%05d.txt", t.made/smallDir, t.made)
			if err := t.put(filepath.Join(to, piece), data[:smallBytes]); err != nil {
				return err
			}
			t.made++
		}
		return nil
	})
}

func (t *tree) copy(to, from string) error {
	return filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if t.made >= files {
			return filepath.SkipAll
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		rel = filepath.Join(to, rel)
		if e.IsDir() {
			if t.dirs++; t.dirs%10 == 0 {
				return t.put(filepath.Join(rel, ".gitignore"), []byte("# made here\n*.tmp\n/out/\n!keep.tmp\n"))
			}
			return nil
		}
		if !e.Type().IsRegular() || e.Name() == ".gitignore" {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil || bytes.IndexByte(data, 0) >= binaryProbe || bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
			return err
		}
		t.made++
		if t.made%ignoredShare == 0 {
			ignored := filepath.Join(filepath.Dir(rel), "build", e.Name())
			if t.made%(2*ignoredShare) == 0 {
				ignored = rel + ".log"
			}
			rel = ignored
		}
		return t.put(rel, data)
	})
}

func (t *tree) put(name string, data []byte) error {
	name = filepath.Join(t.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}
