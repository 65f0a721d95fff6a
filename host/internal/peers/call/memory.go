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

// memoryResult is what the tool of a job takes of memory.
type memoryResult struct {
	// Of a process that has loaded it, beyond what that had before: the private
	// memory in KiB when it is loaded, when it was called once, and of each
	// instance that waits. What was not there to be measured is missing.
	Private map[string]int
	// Of a guest, in bytes: with which a call begins, and what it had at most.
	// An instance that grows is not used again.
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

// privateMemory asks a process of its own.
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
