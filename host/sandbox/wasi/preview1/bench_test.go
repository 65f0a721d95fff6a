//go:build unix

package preview1_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
)

// BenchmarkCalls measures a guest's calls, including the host's part.
func BenchmarkCalls(b *testing.B) {
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	if err := preview1.Instantiate(ctx, rt, preview1.ModuleName); err != nil {
		b.Fatal(err)
	}
	mod, err := rt.Instantiate(ctx, trampoline())
	if err != nil {
		b.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), make([]byte, 1<<20), 0o666); err != nil {
		b.Fatal(err)
	}
	fs, err := wasi.New([]policy.Mount{{Host: dir}}, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	world := preview1.New(&preview1.Options{FS: fs})
	defer world.Close()
	ctx = preview1.WithWorld(ctx, world)
	mem := mod.Memory()
	mem.Write(1024, []byte(dir[1:]+"/f"))
	n := uint64(len(dir) + 1)
	mem.WriteUint32Le(512, 65536)
	mem.WriteUint32Le(516, 4096)
	if _, err := mod.ExportedFunction("path_open").Call(ctx, preopen, 0, 1024, n, 0, rReading, 0, 0, uint64(resultAt)); err != nil {
		b.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		args []uint64
	}{
		{"sched_yield", nil},
		{"clock_time_get", []uint64{1, 0, uint64(resultAt)}},
		{"fd_fdstat_get", []uint64{4, uint64(resultAt)}},
		{"fd_write", []uint64{1, 512, 1, uint64(resultAt)}},
		{"fd_pread", []uint64{4, 512, 1, 0, uint64(resultAt)}},
		{"path_filestat_get", []uint64{preopen, 0, 1024, n, uint64(resultAt)}},
		{"random_get", []uint64{65536, 32}},
	} {
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			f := mod.ExportedFunction(tc.name)
			stack := make([]uint64, 9)
			for b.Loop() {
				copy(stack, tc.args)
				if err := f.CallWithStack(ctx, stack); err != nil || stack[0] != 0 {
					b.Fatal(err, stack[0])
				}
			}
		})
	}
}
