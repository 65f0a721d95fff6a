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
	// files is how many the tree has, besides .gitignore files and go.mod.
	files = 20_000
	// ignoredShare says that one file in so many is one that .gitignore
	// excludes.
	ignoredShare = 20
	// probe is where a NUL makes a file binary for our tool; for ripgrep it
	// may be anywhere, so that files with a later one are left out.
	probe = 8000
)

// makeTree makes the tree that is searched, unless it is there: the source of
// Go, as often as it takes to get so many files, with .gitignore files at the
// top and in every tenth directory, and files that they exclude.
func makeTree(dir string) error {
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
	if err := t.put(".gitignore", []byte("*.log\nbuild/\n/vendor/\n*.o\n.DS_Store\n")); err != nil {
		return err
	}
	// It is inside of this module, which it must not be a part of.
	if err := t.put("go.mod", []byte("module tree\n")); err != nil {
		return err
	}
	for n := 0; t.made < files; n++ {
		if err := t.copy("part"+strconv.Itoa(n), filepath.Join(runtime.GOROOT(), "src")); err != nil {
			return err
		}
	}
	return t.put(".git/made", []byte(want))
}

type tree struct {
	dir        string
	made, dirs int
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
		if err != nil || bytes.IndexByte(data, 0) >= probe || bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
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
