package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stockade-dev/stockade/guests"
	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
)

// TestPrebuiltCodeIsThatOfThisSource: each built-in tool has native code if that is
// embedded. With -whole, compiling the smallest tool again gives the same bytes.
func TestPrebuiltCodeIsThatOfThisSource(t *testing.T) {
	gueststest.Need(t)
	const again = "; run `make guests`"
	if _, err := os.Stat(filepath.Join("..", "..", "guests", filepath.FromSlash(guests.NativeDir()))); err != nil {
		return // not on this platform
	}
	catalog, err := registry.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	var smallest *tool.Module
	for _, name := range catalog.Names() {
		e, _ := catalog.Find(name)
		mod := e.Module
		if prebuilt(mod.Digest) == nil {
			t.Fatalf("%s has no native code%s", mod.Name, again)
		}
		if smallest == nil || mod.Bytes < smallest.Bytes {
			smallest = mod
		}
	}
	if !*whole {
		return
	}
	box := sandbox.New(sandbox.Options{CacheDir: filepath.Join(t.TempDir(), "cache"), Spawn: jail.RunHelper})
	defer box.Close()
	out := t.TempDir()
	if err := box.Pack(t.Context(), smallest, out); err != nil {
		t.Fatal(err)
	}
	err = fs.WalkDir(prebuilt(smallest.Digest), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		got, err := fs.ReadFile(prebuilt(smallest.Digest), name)
		if err != nil {
			return err
		}
		want, err := os.ReadFile(filepath.Join(out, name))
		if !bytes.Equal(got, want) {
			t.Errorf("%s of %s is not what this source makes, %v%s", name, smallest.Name, err, again)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
