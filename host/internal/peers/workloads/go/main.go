// Command go runs the workload that its first argument names and prints a checksum of the
// result. The benchmark builds it for wasip1.
package main

import (
	"fmt"
	"os"
)

var workloads = map[string]func() uint64{
	"flate":  runFlate,
	"grep":   runGrep,
	"json":   runJSON,
	"map":    runMap,
	"mandel": runMandel,
	"nbody":  runNBody,
	"regexp": runRegexp,
	"sha256": runSHA256,
	"sort":   runSort,
}

func main() {
	if len(os.Args) < 2 || workloads[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "no such workload")
		os.Exit(1)
	}
	fmt.Printf("%s %016x\n", os.Args[1], workloads[os.Args[1]]())
}

// random is a linear congruential generator, the only source of "input".
type random uint32

func (r *random) next() uint32 {
	*r = *r*1664525 + 1013904223
	return uint32(*r >> 8)
}

func (r *random) below(n int) int { return int(r.next()) % n }

// mix adds v to a checksum.
func mix(sum, v uint64) uint64 { return (sum ^ v) * 1099511628211 }
