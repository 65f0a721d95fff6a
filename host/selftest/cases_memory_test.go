package selftest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"runtime"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/selftest/machine"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// memoryCases concern memory, tables and instances.
func memoryCases() []testCase {
	return []testCase{
		{id: "R04", title: "grow the memory to its end; begin with all of it", attacks: "grow-beyond-limit large-minimum memory-of-all-calls memory-kept", also: try(growsToTheEnd)},
		{id: "R05", title: "large tables, many tables", attacks: "table-grow table-grow-slowly table-minimum many-tables"},
		{id: "R10", title: "modules that are archives, and unpack to more", also: try(packedModules),
			open: "nothing unpacks anything yet; when packages come from a registry, their layers have to be limited while they are read"},
		{id: "R26", title: "thousands of instances", also: try(ofEveryKind(manyInstances))},
	}
}

// mostExtra limits the memory that the host may take for a guest beyond its limit.
const mostExtra = 64 << 20

// requireFlatMemory fails if Go takes much more memory from the system while run runs.
// The memory of guests does not belong to Go.
func requireFlatMemory(run func() error) error {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	err := run()
	runtime.ReadMemStats(&after)
	if grown := int64(after.Sys) - int64(before.Sys); err == nil && grown > mostExtra {
		err = fmt.Errorf("the host takes %d MiB more", grown>>20)
	}
	return err
}

func growsToTheEnd(t *trial) error {
	for _, pages := range []uint64{1 << 16, 1<<16 - machine.Pages, 1<<32 - 1, 1 << 31} {
		s := &script{}
		grow, size := s.add("memory.grow", uint32(pages)), s.add("memory.size")
		err := requireFlatMemory(func() error {
			o, err := t.runScript(Guest{Limits: policy.Limits{MemoryBytes: 16 << 20}}, s)
			if err != nil || o.Result.Err != nil {
				return errors.Join(err, fmt.Errorf("the guest ended: %s", o.Result.Summary()))
			}
			r, err := readReport(o.Result.Output)
			if err == nil && (r.resultOf(grow) != minusOne || r.resultOf(size) != machine.Pages || o.Result.Usage.PeakMemoryBytes > 16<<20) {
				err = fmt.Errorf("it has %d pages, at most %d bytes", r.resultOf(size), o.Result.Usage.PeakMemoryBytes)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%d pages: %w", pages, err)
		}
	}
	// As a minimum it is not admitted, or finds no room.
	return requireFlatMemory(func() error {
		o, err := t.run(Guest{Code: w.Tool(w.ToolOptions{MemoryMin: 1 << 16})})
		if err == nil {
			_, err = stoppedBy(o, "", tool.CodeMemory, tool.CodeNotAdmitted)
		}
		return err
	})
}

// packedModules are small files that claim to unpack to a gibibyte.
func packedModules(t *trial) error {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	zeros := make([]byte, 1<<20)
	for range 256 {
		if _, err := z.Write(zeros); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	var module bytes.Buffer
	z = gzip.NewWriter(&module)
	if _, err := z.Write(machine.PlainModule(machine.Native)); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	zstd := append([]byte{0x28, 0xb5, 0x2f, 0xfd}, bytes.Repeat([]byte{0}, 64)...)
	for i, code := range [][]byte{packed.Bytes(), module.Bytes(), zstd, []byte("PK\x03\x04")} {
		err := requireFlatMemory(func() error {
			o, err := t.run(Guest{Code: code})
			if err == nil {
				_, err = stoppedBy(o, "", tool.CodeNotAdmitted)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("archive %d: %w", i, err)
		}
	}
	return nil
}

// manyInstances ends guests in every way, so that few instances are used again.
func manyInstances(t *trial) error {
	rounds := 350
	if t.kind != machine.Native {
		rounds = 100
	}
	g := t.workspaceGuest(true)
	good, crashes, grows := &script{}, &script{}, &script{}
	for _, s := range []*script{good, crashes, grows} {
		s.control(t)
		s.open(s.place(t.guestPath("ws/inside")), 0, rightsRead, 0) // stays open
	}
	crashes.add("trap")
	grows.add("memory.grow", 16)
	round := func(n int) error {
		for range n {
			for _, s := range []*script{good, crashes, grows} {
				o, err := t.runScript(g, s)
				if err == nil && (o.Result.Err != nil) != (s == crashes) {
					err = errors.New(o.Result.Summary())
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := round(20); err != nil {
		return err
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	goroutines, files := runtime.NumGoroutine(), openFiles()
	if err := round(rounds); err != nil {
		return err
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	switch kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); {
	case kept > 16<<20:
		return fmt.Errorf("%d MiB are kept after %d instances", kept>>20, 3*rounds)
	case runtime.NumGoroutine() > goroutines+5:
		return fmt.Errorf("%d goroutines became %d", goroutines, runtime.NumGoroutine())
	case openFiles() > files+5:
		return fmt.Errorf("%d open files became %d", files, openFiles())
	}
	return nil
}
