package wasi

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
)

// BenchmarkFS compares an FS with and without a guard to package os, which
// checks nothing.
func BenchmarkFS(b *testing.B) {
	base, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for _, dir := range []string{"many", "a/b/c/d", "masked"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o777); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 1000 {
		if err := os.WriteFile(filepath.Join(base, "many", fmt.Sprintf("file%04d", i)), nil, 0o666); err != nil {
			b.Fatal(err)
		}
	}
	for _, p := range []string{"small", "a/b/c/d/small"} {
		if err := os.WriteFile(filepath.Join(base, p), make([]byte, 1024), 0o666); err != nil {
			b.Fatal(err)
		}
	}
	open := func(masked ...string) *FS {
		f, err := New([]policy.Mount{{Host: base, Write: true}}, masked, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { f.Close() })
		return f
	}
	for _, tc := range []struct {
		name string
		fs   *FS // nil: package os
	}{
		{"os", nil},
		{"plain", open()},
		{"guarded", open(filepath.Join(base, "masked"))},
	} {
		for _, p := range []string{"small", "a/b/c/d/small"} {
			host := filepath.Join(base, p)
			guest := guestName(host)
			b.Run("stat/"+tc.name+"/"+filepath.Base(filepath.Dir(p)), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if tc.fs == nil {
						if _, err := os.Stat(host); err != nil {
							b.Fatal(err)
						}
					} else if _, errno := tc.fs.Stat(guest); errno != 0 {
						b.Fatal(errno)
					}
				}
			})
			b.Run("read/"+tc.name+"/"+filepath.Base(filepath.Dir(p)), func(b *testing.B) {
				b.ReportAllocs()
				buf := make([]byte, 4096)
				for b.Loop() {
					if tc.fs == nil {
						f, err := os.Open(host)
						if err != nil {
							b.Fatal(err)
						}
						if n, err := f.Read(buf); n != 1024 || err != nil {
							b.Fatal(n, err)
						}
						f.Close()
						continue
					}
					f, errno := tc.fs.Open(guest, ReadOnly)
					if errno != 0 {
						b.Fatal(errno)
					}
					if n, errno := f.(*File).Read(buf); n != 1024 || errno != 0 {
						b.Fatal(n, errno)
					}
					f.Close()
				}
			})
		}
		b.Run("readdir1000/"+tc.name, func(b *testing.B) {
			b.ReportAllocs()
			many := filepath.Join(base, "many")
			for b.Loop() {
				if tc.fs == nil {
					if list, err := os.ReadDir(many); len(list) != 1000 || err != nil {
						b.Fatal(len(list), err)
					}
					continue
				}
				d, errno := tc.fs.Open(guestName(many), DirectoryOnly)
				if errno != 0 {
					b.Fatal(errno)
				}
				count := 0
				for cookie := uint64(0); ; count++ {
					e, more, errno := d.(*Dir).Entry(cookie)
					if errno != 0 {
						b.Fatal(errno)
					}
					if !more {
						break
					}
					cookie = e.Next
				}
				if count != 1002 {
					b.Fatal(count)
				}
				d.Close()
			}
		})
	}
}
