//go:build bench

package main

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/internal/peers/call/guest"
	"github.com/stockade-dev/stockade/host/sandbox"
)

// setup holds everything that the measurements share.
type setup struct {
	dir   string // directory that the guests see
	cache string // of compiled code; it stays
	box   *sandbox.Sandbox
	files map[string]string      // of the tools, by job
	calls map[string]*guest.Call // by job
	pairs []*pair
}

func setUp(selected func(string) bool) (_ *setup, err error) {
	if err := os.MkdirAll(outDir, 0o755); err != nil {
		return nil, err
	}
	s := &setup{files: map[string]string{}, calls: map[string]*guest.Call{}}
	if s.cache, err = guest.Cache(outDir); err != nil {
		return nil, err
	}
	s.box = guest.NewSandbox(s.cache)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "peers-"); err != nil {
		return nil, err
	}
	if err := writeItems(s.dir); err != nil {
		return nil, err
	}
	// The other measurements that need the jobs.
	also := map[string][]string{"small": {"throughput", "starts", "memory"}, "large": {"memory"}}
	for _, j := range jobs {
		var picked []string
		for _, name := range peers {
			if selected(j.name + "-" + name) {
				picked = append(picked, name)
			}
		}
		if len(picked) == 0 && !slices.ContainsFunc(also[j.name], selected) {
			continue
		}
		if err := s.prepare(j); err != nil {
			return nil, err
		}
		if err := s.addPairs(j, picked); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// prepare builds and compiles the tool of a job.
func (s *setup) prepare(j job) (err error) {
	if s.files[j.name], err = buildTool(j.name); err != nil {
		return err
	}
	if s.calls[j.name], err = guest.FromFile(s.files[j.name], s.dir, j.arguments(s.dir)); err != nil {
		return err
	}
	bench.Progress("compile %s", j.name)
	return s.box.Compile(context.Background(), s.calls[j.name].Module)
}

func (s *setup) close() error {
	var errs []error
	for _, p := range s.pairs {
		errs = append(errs, p.variant.close())
	}
	return errors.Join(append(errs, s.box.Close(), os.RemoveAll(s.dir))...)
}
