package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stockade-dev/stockade/guests/gueststest"
)

// TestModelServeServesAnyClient starts the real server, points another process
// of the program at the address that it prints, and ends it by a signal.
func TestModelServeServesAnyClient(t *testing.T) {
	gueststest.Need(t)
	home := t.TempDir()
	script := filepath.Join(home, "script.jsonl")
	if err := os.WriteFile(script, []byte(`{"text":"Served from a script.","chunk_bytes":2}`), 0o644); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "HOME="+home, "TEST_ACCOUNT_HOME="+home, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME=")
	server := exec.CommandContext(t.Context(), "stockade", "model", "serve", "--script", script)
	server.Env, server.Dir = env, home
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no address: %v", err)
	}

	client := exec.CommandContext(t.Context(), "stockade", "run", "--model", "scripted", "hello there")
	client.Env, client.Dir = append(env, "OPENAI_BASE_URL="+strings.TrimSpace(url)), home
	answer, err := client.Output()
	if err != nil || string(answer) != "Served from a script.\n" {
		t.Errorf("got %q, %v", answer, err)
	}

	if err := server.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}

	refused := exec.CommandContext(t.Context(), "stockade", "model", "serve", "--addr", "0.0.0.0:0")
	refused.Env, refused.Dir = env, home
	if text, err := refused.CombinedOutput(); err == nil || !strings.Contains(string(text), "loopback") && !strings.Contains(string(text), "this machine") {
		t.Errorf("an address that others reach: %q, %v", text, err)
	}
}
