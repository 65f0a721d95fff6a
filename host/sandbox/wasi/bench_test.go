package wasi

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"
)

// BenchmarkFS compares an FS with and without a guard to the directory mount
// of wazero, which checks nothing.
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
	open := func(masked ...string) sys.FS {
		f, err := New([]policy.Mount{{Host: base, Write: true}}, masked, Limits{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { f.Close() })
		return f
	}
	prefix := guestName(base)[1:] + "/"
	for _, tc := range []struct {
		name, prefix string
		fs           sys.FS
	}{
		{"wazero", "", sysfs.DirFS(base)},
		{"plain", prefix, open()},
		{"guarded", prefix, open(filepath.Join(base, "masked"))},
	} {
		for _, p := range []string{"small", "a/b/c/d/small"} {
			p := tc.prefix + p
			b.Run("stat/"+tc.name+"/"+filepath.Base(filepath.Dir(p)), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, errno := tc.fs.Stat(p); errno != 0 {
						b.Fatal(errno)
					}
				}
			})
			b.Run("read/"+tc.name+"/"+filepath.Base(filepath.Dir(p)), func(b *testing.B) {
				b.ReportAllocs()
				buf := make([]byte, 4096)
				for b.Loop() {
					f, errno := tc.fs.OpenFile(p, sys.O_RDONLY, 0)
					if errno != 0 {
						b.Fatal(errno)
					}
					if n, errno := f.Read(buf); n != 1024 || errno != 0 {
						b.Fatal(n, errno)
					}
					f.Close()
				}
			})
		}
		b.Run("readdir1000/"+tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f, errno := tc.fs.OpenFile(tc.prefix+"many", sys.O_RDONLY|sys.O_DIRECTORY, 0)
				if errno != 0 {
					b.Fatal(errno)
				}
				if list, errno := f.Readdir(2000); len(list) != 1000 || errno != 0 {
					b.Fatal(len(list), errno)
				}
				f.Close()
			}
		})
	}
}
