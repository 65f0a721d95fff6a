package native

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// If a file cannot be mapped the memory is unchanged, so that the file can be read into it.
func TestWhatCannotBeMapped(t *testing.T) {
	const size = 1 << 20
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, bytes.Repeat([]byte("f"), size), 0o600); err != nil {
		t.Fatal(err)
	}
	for title, c := range map[string]struct {
		name     string
		flags    int
		from, to int // of the memory
		offset   int64
		want     bool
	}{
		"a file":                        {name, os.O_RDONLY, 0, size, 0, true},
		"a part":                        {name, os.O_RDONLY, size / 2, size - 1, size / 2, true},
		"not from where a page begins":  {name, os.O_RDONLY, 0, size, 100, false},
		"not to where a page begins":    {name, os.O_RDONLY, 8, size, 0, false},
		"nothing":                       {name, os.O_RDONLY, 0, 0, 0, false},
		"a file that may not be read":   {name, os.O_WRONLY, 0, size, 0, false},
		"a file system without content": {"/proc/self/status", os.O_RDONLY, 0, size, 0, false},
		"a directory":                   {filepath.Dir(name), os.O_RDONLY, 0, size, 0, false},
	} {
		t.Run(title, func(t *testing.T) {
			mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Munmap(mem)
			copy(mem, bytes.Repeat([]byte("m"), size))
			f, err := os.OpenFile(c.name, c.flags, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			p := mem[c.from:c.to]
			got := mapInto(p, f, c.offset)
			content := "m"
			if c.want {
				content = "f"
			}
			if got != c.want || string(p) != string(bytes.Repeat([]byte(content), len(p))) {
				t.Fatalf("got %v, and the memory holds %.20q", got, p)
			}
			if !c.want {
				clear(p) // which ends the process if it cannot be written to
			}
			if string(mem[:c.from]) != string(bytes.Repeat([]byte("m"), c.from)) {
				t.Error("what lies before has changed")
			}
		})
	}
}
