//go:build bench

// Command probe is a process whose start, or whose memory, is measured. The benchmark
// itself is no such process because it contains its peers.
//
//	probe nothing
//	probe first CACHE MODULE DIGEST DIR ARGS
//	probe memory CACHE MODULE DIGEST DIR ARGS
//
// nothing ends at once; first makes a call, whose code is in the cache, and ends; memory
// prints its memory at several times as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/stockade-dev/stockade/host/internal/peers/call/guest"
	"github.com/stockade-dev/stockade/host/sandbox"
)

func main() {
	guest.RunCompileChild()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 1 && args[0] == "nothing" {
		return nil
	}
	if len(args) != 6 {
		return errors.New("see the comment of this command")
	}
	call, err := guest.FromInstalled(args[2], args[3], args[4], args[5])
	if err != nil {
		return err
	}
	box := guest.NewSandbox(args[1])
	ctx := context.Background()
	switch args[0] {
	case "first":
		out, err := call.Run(ctx, box)
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(out)
		return err // without closing anything, as the program itself ends
	case "memory":
		m, err := measure(ctx, box, call)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(m)
	}
	return errors.New("see the comment of this command")
}

// slots is the number of waiting instances made in addition to the first.
const slots = 3

// measure returns the private memory of the process at several times, in KiB. "slot" is
// missing if no instance waits.
func measure(ctx context.Context, box *sandbox.Sandbox, call *guest.Call) (map[string]int, error) {
	start, err := privateKiB()
	if err != nil {
		return nil, err
	}
	if err := box.Compile(ctx, call.Module); err != nil {
		return nil, err
	}
	loaded, err := privateKiB()
	if err != nil {
		return nil, err
	}
	m := map[string]int{"loaded": loaded - start}
	fill := func(n int) (waiting, kib int, err error) {
		if waiting, err = sandbox.FillPool(ctx, box, call.Module, call.Grant, call.Call, n); err != nil {
			return 0, 0, err
		}
		kib, err = privateKiB()
		return waiting, kib, err
	}
	// Both must stay until the end.
	defer runtime.KeepAlive(box)
	defer runtime.KeepAlive(call)
	few, one, err := fill(1)
	if err != nil {
		return nil, err
	}
	m["called"] = one - start
	more, all, err := fill(1 + slots)
	if more > few {
		m["slot"] = (all - one) / (more - few)
	}
	return m, err
}

// privateKiB returns the private memory in KiB, without garbage.
func privateKiB() (int, error) {
	for range 3 { // finalizers free memory at the next collection
		debug.FreeOSMemory()
	}
	data, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		return 0, err
	}
	return field(string(data), "Anonymous:")
}
