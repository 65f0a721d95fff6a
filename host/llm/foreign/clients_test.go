//go:build providers

package foreign

import (
	"context"
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

// TestClients lets other projects' clients use stockade model serve.
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

// reader lets another project's agent read a file.
type reader struct {
	calls map[string]string // the arguments by the name of a tool
	read  atomic.Bool
}

func (r *reader) Respond(_ context.Context, req *offline.Request) offline.Answer {
	last := req.Chat.Messages[len(req.Chat.Messages)-1]
	if last.Role == openai.ChatMessageRoleTool {
		r.read.Store(strings.Contains(last.Content, "4711"))
		return offline.Answer{Text: "The budget is 4711."}
	}
	for _, t := range req.Chat.Tools {
		if args := r.calls[t.Function.Name]; args != "" {
			call := openai.ToolCall{ID: "call_a", Function: openai.FunctionCall{Name: t.Function.Name, Arguments: args}}
			return offline.Answer{Text: "I read it.", Calls: []openai.ToolCall{call}}
		}
	}
	return offline.Answer{Text: "A title"} // some agents ask for one
}

// TestAgents lets other projects' agents read a file with stockade model serve: opencode by
// chat completions, codex by responses.
func TestAgents(t *testing.T) {
	arch, triple := "x64", "x86_64"
	if runtime.GOARCH == "arm64" {
		arch, triple = "arm64", "aarch64"
	}
	for _, a := range []struct {
		program, settings, text string // the program's path, and what it reads of its model
		args                    []string
	}{{
		program: "opencode-linux-" + arch + "/bin/opencode", settings: ".config/opencode/opencode.json", args: []string{"run"},
		text: `{"model": "stockade/offline", "autoupdate": false, "share": "disabled", "provider": {"stockade": {
			"npm": "@ai-sdk/openai-compatible", "name": "stockade", "options": {"baseURL": "@BASE", "apiKey": "@KEY"}, "models": {"offline": {"name": "offline"}}}}}`,
	}, {
		program: "@openai/codex-linux-" + arch + "/vendor/" + triple + "-unknown-linux-musl/bin/codex", settings: ".codex/config.toml",
		args: []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"},
		text: `model = "offline"
model_provider = "stockade"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.stockade]
name = "stockade"
base_url = "@BASE"
env_key = "STOCKADE_KEY"
wire_api = "responses"`,
	}} {
		t.Run(filepath.Base(a.program), func(t *testing.T) {
			r := &reader{calls: map[string]string{
				"read": `{"filePath":"notes.txt"}`, "exec_command": `{"cmd":"cat notes.txt"}`, "shell_command": `{"command":"cat notes.txt"}`,
			}}
			home, work := t.TempDir(), t.TempDir()
			for file, text := range map[string]string{
				filepath.Join(work, "notes.txt"): "The budget is 4711.\n",
				filepath.Join(home, a.settings):  strings.NewReplacer("@BASE", serve(t, r), "@KEY", litellmKey).Replace(a.text),
			} {
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(*programs, "node_modules", a.program), append(a.args, "Say what the budget is.")...)
			cmd.Dir = work
			cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "STOCKADE_KEY=" + litellmKey, "HTTPS_PROXY=http://127.0.0.1:9", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1"}
			output, err := cmd.CombinedOutput()
			if err != nil || !r.read.Load() || !strings.Contains(string(output), "The budget is 4711.") {
				t.Errorf("%v, that it has read the file is %t\n%s", err, r.read.Load(), output)
			}
		})
	}
}

// serve does the same as stockade model serve.
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
