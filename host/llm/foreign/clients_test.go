//go:build providers

package foreign

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/stockade-dev/stockade/host/llm/offline"
)

// TestClients has clients of others talk to what stockade model serve serves.
func TestClients(t *testing.T) {
	for _, library := range []string{"openai", "litellm"} {
		t.Run(library, func(t *testing.T) {
			file, err := os.Open(filepath.Join("testdata", "client.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			script, err := offline.ParseScript(file.Name(), file)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), *python, filepath.Join("testdata", "client.py"), library, serve(t, script), litellmKey)
			cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "HTTPS_PROXY=http://127.0.0.1:9", "LITELLM_LOCAL_MODEL_COST_MAP=True")
			if output, err := cmd.CombinedOutput(); err != nil || script.Remaining() > 0 {
				t.Errorf("%v, and %d lines of the script were not asked for\n%s", err, script.Remaining(), output)
			}
		})
	}
}

// reader has opencode read a file.
type reader struct{ read atomic.Bool }

func (r *reader) Respond(_ context.Context, req *offline.Request) offline.Answer {
	last := req.Chat.Messages[len(req.Chat.Messages)-1]
	switch {
	case len(req.Chat.Tools) == 0:
		return offline.Answer{Text: "A title"} // it asks for one
	case last.Role == openai.ChatMessageRoleTool:
		r.read.Store(strings.Contains(last.Content, "4711"))
		return offline.Answer{Text: "The budget is 4711."}
	}
	return offline.Answer{Text: "I read it.", Calls: []openai.ToolCall{{ID: "call_a", Function: openai.FunctionCall{Name: "read", Arguments: `{"filePath":"notes.txt"}`}}}}
}

func TestOpencode(t *testing.T) {
	r := &reader{}
	home, work := t.TempDir(), t.TempDir()
	settings := filepath.Join(home, ".config", "opencode", "opencode.json")
	for file, text := range map[string]string{
		filepath.Join(work, "notes.txt"): "The budget is 4711.\n",
		settings: fmt.Sprintf(`{"model": "stockade/offline", "autoupdate": false, "share": "disabled", "provider": {"stockade": {
			"npm": "@ai-sdk/openai-compatible", "name": "stockade", "options": {"baseURL": %q, "apiKey": %q}, "models": {"offline": {"name": "offline"}}}}}`, serve(t, r), litellmKey),
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(*programs, "node_modules", "opencode-linux-"+arch, "bin", "opencode"), "run", "Say what the budget is.")
	cmd.Dir = work
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "HTTPS_PROXY=http://127.0.0.1:9", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1"}
	output, err := cmd.CombinedOutput()
	if err != nil || !r.read.Load() || !strings.Contains(string(output), "The budget is 4711.") {
		t.Errorf("%v, that it has read the file is %t\n%s", err, r.read.Load(), output)
	}
}

// serve is what stockade model serve does.
func serve(t *testing.T, model offline.Responder) (baseURL string) {
	t.Helper()
	server := offline.NewServer(model, litellmKey)
	baseURL, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return baseURL
}
