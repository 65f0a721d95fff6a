package oci

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/policy/network"
)

var registryProgram = flag.String("registry", "", "the `program` docker-registry, with which the tests run, too")

var module = []byte("\x00asm\x01\x00\x00\x00")

const envelope = `{"payloadType":"text/plain","payload":"","signatures":[]}`

// reaching returns a client that reaches these hosts, and the addresses of this
// machine at which they are.
func reaching(t testing.TB, idle time.Duration, rules ...string) *http.Client {
	t.Helper()
	out, err := egress.New(egress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all []network.Rule
	for _, text := range rules {
		r, err := network.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	client := out.FollowingClient(network.New(all), idle)
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// serve starts a server on this machine and returns HOST:PORT.
func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// registries are where the tests of what works push to.
func registries(t *testing.T) map[string]string {
	t.Helper()
	quiet := registry.Logger(log.New(io.Discard, "", 0))
	all := map[string]string{
		"one with a list of referrers":  serve(t, registry.New(quiet, registry.WithReferrersSupport(true))),
		"one without":                   serve(t, registry.New(quiet)),
		"one that redirects such lists": serve(t, redirectsReferrers(registry.New(quiet))),
	}
	if *registryProgram != "" {
		all["docker-registry"] = dockerRegistry(t, *registryProgram)
	}
	return all
}

func redirectsReferrers(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/referrers/") {
			http.Redirect(w, r, "https://www.example/packages", http.StatusSeeOther)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// dockerRegistry runs a registry of Debian's.
func dockerRegistry(t *testing.T, program string) string {
	t.Helper()
	// It has no way to say which port it has got.
	free := httptest.NewServer(nil)
	addr := strings.TrimPrefix(free.URL, "http://")
	free.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %q}, delete: {enabled: true}}\nhttp: {addr: %q}\n", filepath.Join(dir, "data"), addr)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "serve", config)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	for {
		resp, err := http.Get("http://" + addr + "/v2/")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return addr
			}
			t.Fatalf("docker-registry answers %s", resp.Status)
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("docker-registry has ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func parse(t testing.TB, s string) Reference {
	t.Helper()
	ref, err := ParseReference(s)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}
