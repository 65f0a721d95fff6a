package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/rogpeppe/go-internal/testscript"
)

// With others, the scripts of TestShare run cosign and oras.
var others = flag.String("others", "", "the `directory` with the programs cosign and oras")

var registryProgram = flag.String("registry", "", "the `program` docker-registry, with which TestShare runs in the place of a registry in this process")

// TestShare runs testdata/registry: what an author, users and a team do with a module,
// over a registry. In make test it ends where somebody else has called it, because each
// version that follows is built and compiled; make test-registry runs all of it.
func TestShare(t *testing.T) {
	p := inDirectory(t, "testdata/registry")
	s := sharing{t: t}
	p.Cmds["registry"], p.Cmds["requests"], p.Cmds["stopwatch"], p.Cmds["image"] = s.registry, s.requests, s.stopwatch, image
	setup := p.Setup
	p.Setup = func(env *testscript.Env) error {
		env.Setenv("OTHERS", *others)
		return setup(env)
	}
	p.Condition = func(cond string) (bool, error) {
		switch cond {
		case "real":
			return *registryProgram != "", nil
		case "others":
			return *others != "", nil
		case "whole":
			return *whole || *registryProgram != "", nil
		}
		return false, fmt.Errorf("there is no condition %q", cond)
	}
	testscript.Run(t, p)
}

// sharing is the registry of one script and its clock.
type sharing struct {
	t       *testing.T
	asked   atomic.Int64
	started time.Time
}

// passwords is for ada with the password s3cret, as htpasswd writes it.
const passwords = "ada:$2y$10$abcdefghijklmnopqrstuu3KWNuWLhBnmgYfnzONPueahDuedC/lu\n"

// registry starts a registry on loopback, and puts its HOST:PORT into REGISTRY. A private
// one wants a login:
//
//	registry [private]
func (s *sharing) registry(ts *testscript.TestScript, neg bool, args []string) {
	private := len(args) == 1 && args[0] == "private"
	if neg || len(args) != 0 && !private {
		ts.Fatalf("usage: registry [private]")
	}
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
	if *registryProgram != "" {
		// Requests to the registry go through this process, which counts them.
		to := &url.URL{Scheme: "http", Host: s.dockerRegistry(ts, private)}
		handler = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // it answers with addresses of itself
		}}
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		if name, password, _ := r.BasicAuth(); private && *registryProgram == "" && (name != "ada" || password != "s3cret") {
			rw.Header().Set("WWW-Authenticate", `Basic realm="private"`)
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(rw, r)
	}))
	ts.Defer(server.Close)
	ts.Setenv("REGISTRY", server.Listener.Addr().String())
}

// dockerRegistry runs a registry of Debian's.
func (s *sharing) dockerRegistry(ts *testscript.TestScript, private bool) (addr string) {
	free := httptest.NewServer(nil) // it has no way to say which port it has got
	addr = free.Listener.Addr().String()
	free.Close()
	dir := s.t.TempDir()
	config := filepath.Join(dir, "config.yml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %q}}\nhttp: {addr: %q}\n", filepath.Join(dir, "data"), addr)
	if private {
		file := filepath.Join(dir, "htpasswd")
		ts.Check(os.WriteFile(file, []byte(passwords), 0o600))
		text += fmt.Sprintf("auth: {htpasswd: {realm: private, path: %q}}\n", file)
	}
	ts.Check(os.WriteFile(config, []byte(text), 0o600))
	cmd := exec.Command(*registryProgram, "serve", config)
	cmd.Stdout, cmd.Stderr = s.t.Output(), s.t.Output()
	cmd.WaitDelay = 5 * time.Second
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ts.Defer(func() { _ = cmd.Process.Kill(); <-ended })
	for {
		if resp, err := http.Get("http://" + addr + "/v2/"); err == nil {
			resp.Body.Close()
			return addr
		}
		select {
		case err := <-ended:
			ended <- err
			ts.Fatalf("docker-registry has ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// requests fails unless the registry was asked for something, or for nothing, since
// this was looked at before:
//
//	requests none|some
func (s *sharing) requests(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: requests none|some")
	}
	if n := s.asked.Swap(0); (n > 0) != (args[0] == "some") {
		ts.Fatalf("there were %d requests, want %s", n, args[0])
	}
}

// stopwatch starts, or says how long it was:
//
//	stopwatch [WHAT]
func (s *sharing) stopwatch(ts *testscript.TestScript, neg bool, args []string) {
	if s.started.IsZero() {
		s.started = time.Now()
		return
	}
	s.t.Logf("%s: %.1f s", strings.Join(args, " "), time.Since(s.started).Seconds())
}
