package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/registry"
)

// mostOfARequest bounds the first request with the tools that everybody has, in bytes:
// it is paid for in every session.
const mostOfARequest = 20_000

// TestWhatAModelReadsOfTheTools sends a prompt to a provider, and compares what the
// request says of each tool with testdata/tools/NAME.json; UPDATE_PAGES=1 rewrites it.
func TestWhatAModelReadsOfTheTools(t *testing.T) {
	body := firstRequest(t)
	if len(body) > mostOfARequest {
		t.Errorf("the first request has %d bytes, more than %d", len(body), mostOfARequest)
	}
	t.Logf("the first request has %d bytes", len(body))
	var request struct {
		Tools []struct {
			Function json.RawMessage `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	const dir = "testdata/tools"
	update := os.Getenv("UPDATE_PAGES") != ""
	if update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	read := map[string]bool{}
	for _, tool := range request.Tools {
		var function struct{ Name string }
		var text bytes.Buffer
		if err := json.Unmarshal(tool.Function, &function); err != nil {
			t.Fatal(err)
		}
		if err := json.Indent(&text, tool.Function, "", "  "); err != nil {
			t.Fatal(err)
		}
		text.WriteByte('\n')
		read[function.Name] = true
		path := filepath.Join(dir, function.Name+".json")
		if update {
			if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if diff := cmp.Diff(string(want), text.String()); diff != "" || err != nil {
			t.Errorf("%s is not what a model reads of it, %d bytes; run make generate and look at the difference (-want +got): %v\n%s", path, len(tool.Function), err, diff)
		}
	}
	builtin, err := registry.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range builtin.Names() {
		if !read[name] {
			t.Errorf("a model is not told of %s", name)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != len(request.Tools) {
		t.Errorf("there are %d files for %d tools: %v", len(files), len(request.Tools), err)
	}
}

// firstRequest is the body of the request with which a session begins that has no
// settings, no instructions and no modules of others, and may reach a host: else the tools
// of the web are not offered.
func firstRequest(t *testing.T) []byte {
	gueststest.Need(t)
	bodies := make(chan []byte, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil {
			select {
			case bodies <- body:
			default: // it is not the first
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"yes\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	home, work := t.TempDir(), t.TempDir()
	client := exec.CommandContext(t.Context(), "stockade", "run", "--model", "any", "--allow-net", "html.duckduckgo.com", "hello there")
	client.Dir = work
	client.Env = append(os.Environ(), "HOME="+home, "TEST_ACCOUNT_HOME="+home, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME=",
		"OPENAI_BASE_URL="+server.URL, "OPENAI_API_KEY=key-of-the-test")
	out, err := client.CombinedOutput()
	if err != nil || len(bodies) == 0 {
		t.Fatalf("no request came: %v\n%s", err, out)
	}
	return <-bodies
}
