//go:build providers

package foreign

import (
	"bufio"
	"bytes"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	python   = flag.String("python", "", "the `program` python3 of an environment that holds litellm and the vendors' libraries")
	programs = flag.String("programs", "", "the `folder` into which npm has installed aimock and opencode")
)

// The keys that the servers accept.
const (
	aimockKey  = "the-key"
	litellmKey = "sk-the-key"
)

// start starts a server, which ends with the test, and returns its output.
func start(t *testing.T, env []string, name string, args ...string) (output io.Reader, ended <-chan error) {
	t.Helper()
	cmd := exec.Command(name, args...)
	// Only this machine can be reached: LiteLLM would otherwise download current prices.
	cmd.Env = append(os.Environ(), append(env, "HOME="+t.TempDir(), "HTTPS_PROXY=http://127.0.0.1:9", "LITELLM_LOCAL_MODEL_COST_MAP=True")...)
	cmd.Dir = "testdata"
	cmd.WaitDelay = 5 * time.Second
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: run make test-providers, which installs it", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait(); close(done) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
	return output, done
}

// startAimock returns the address of the server.
func startAimock(t *testing.T) string {
	t.Helper()
	out, _ := start(t, nil, filepath.Join(*programs, "node_modules", ".bin", "aimock"), "--config", "aimock.json", "--port", "0")
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "listening on "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return strings.TrimSpace(address)
		}
	}
	t.Fatalf("aimock did not start: %v", lines.Err())
	return ""
}

// camelCase changes names that LiteLLM writes in a form that Google's servers accept and
// aimock does not.
var camelCase = strings.NewReplacer(`"function_call"`, `"functionCall"`, `"function_response"`, `"functionResponse"`, `"function_declarations"`, `"functionDeclarations"`)

// window is a proxy before a server that shows the last body.
type window struct {
	address string

	mu   sync.Mutex
	last []byte
}

func newWindow(t *testing.T, server string) *window {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	w := &window{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	open := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client left
		}
		if len(body) > 0 {
			w.mu.Lock()
			w.last = body
			w.mu.Unlock()
		}
		if strings.Contains(r.URL.Path, ":streamGenerateContent") {
			body = []byte(camelCase.Replace(string(body)))
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(open.Close)
	w.address = open.URL
	return w
}

// seen returns the last body.
func (w *window) seen() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.last)
}

// startLiteLLM returns the address of the proxy, which stands before aimock.
func startLiteLLM(t *testing.T, aimock string) string {
	t.Helper()
	free := httptest.NewServer(nil) // it has no way to say which port it has got
	host, port, _ := strings.Cut(free.Listener.Addr().String(), ":")
	free.Close()
	env := []string{"AIMOCK=" + aimock, "AIMOCK_OPENAI=" + aimock + "/v1", "AIMOCK_OPENROUTER=" + aimock + "/api/v1", "AIMOCK_GOOGLE=" + aimock + "/v1beta"}
	out, ended := start(t, env, filepath.Join(filepath.Dir(*python), "litellm"), "--config", "litellm.yaml", "--host", host, "--port", port)
	said := &tail{}
	go func() { _, _ = io.Copy(said, out) }()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("LiteLLM has said last:\n%s", said)
		}
	})
	address := "http://" + host + ":" + port
	for {
		if resp, err := http.Get(address + "/health/liveliness"); err == nil {
			resp.Body.Close()
			return address
		}
		select {
		case err := <-ended:
			t.Fatalf("LiteLLM has ended: %v", err)
		case <-t.Context().Done():
			t.Fatal("LiteLLM did not start")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// tail keeps the end of everything that is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (b *tail) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	b.text = b.text[max(0, len(b.text)-4096):]
	return len(p), nil
}

func (b *tail) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}
