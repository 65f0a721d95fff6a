//go:build bench

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/sandbox"
)

// memoryResult is the memory that the tool of a job takes.
type memoryResult struct {
	// Private is the private memory of a process in KiB, beyond its memory before it
	// loads the tool: "loaded" after loading, "called" after a call, and "slot" for each
	// waiting instance. Missing values could not be measured.
	Private map[string]int
	// Image is the memory of a guest at the start of a call, and Peak its largest size,
	// in bytes. An instance that grows is not reused.
	Image, Peak uint64
}

func (s *setup) measureMemory() (map[string]memoryResult, error) {
	probe, err := buildProbe()
	if err != nil {
		return nil, err
	}
	all := map[string]memoryResult{}
	for _, j := range jobs {
		bench.Progress("memory of %s", j.name)
		var m memoryResult
		if m.Private, err = s.privateMemory(probe, j); err == nil {
			m.Image, m.Peak, err = s.guestMemory(j)
		}
		if err != nil {
			return nil, fmt.Errorf("memory of %s: %w", j.name, err)
		}
		all[j.name] = m
	}
	return all, nil
}

// privateMemory runs a process of its own and reads its measurements.
func (s *setup) privateMemory(probe string, j job) (m map[string]int, err error) {
	cmd := exec.Command(probe, "memory", s.cache, s.files[j.name], s.calls[j.name].Module.Digest, s.dir, j.arguments(s.dir))
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	return m, json.Unmarshal(output, &m)
}

func (s *setup) guestMemory(j job) (image, peak uint64, err error) {
	ctx := context.Background()
	c := s.calls[j.name]
	memory, _, err := sandbox.Snapshot(ctx, s.box, c.Module)
	if err != nil {
		return 0, 0, err
	}
	r, _, err := s.box.Run(ctx, c.Grant, c.Module, c.Call, nil)
	return uint64(len(memory)), r.Usage.PeakMemoryBytes, err
}
