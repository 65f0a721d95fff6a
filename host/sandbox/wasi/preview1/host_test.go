//go:build unix

package preview1_test

import (
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
)

const canary = hosttest.Canary

// host is a directory of the host; guests see parts of it.
type host struct{ *hosttest.World }

func newHost(t *testing.T) *host {
	t.Helper()
	return &host{hosttest.New(t)}
}

// name returns the guest's name of p, below its preopen.
func (h *host) name(p string) string { return strings.TrimPrefix(h.Path(p), "/") }

func (h *host) rw(p string) policy.Mount { return policy.Mount{Host: h.Path(p), Write: true} }
func (h *host) ro(p string) policy.Mount { return policy.Mount{Host: h.Path(p)} }

func (h *host) fs(masked []string, limits wasi.Limits, mounts ...policy.Mount) *wasi.FS {
	h.T.Helper()
	var paths []string
	for _, p := range masked {
		paths = append(paths, h.Path(p))
	}
	f, err := wasi.New(mounts, paths, &wasi.Options{Limits: limits})
	if err != nil {
		h.T.Fatal(err)
	}
	return f
}

// options has an FS with these mounts, and nothing else.
func (h *host) options(masked []string, mounts ...policy.Mount) *preview1.Options {
	h.T.Helper()
	return &preview1.Options{FS: h.fs(masked, wasi.Limits{}, mounts...)}
}
