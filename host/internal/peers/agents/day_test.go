//go:build bench

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
)

var (
	dayPrograms = flag.String("programs", "../../../bin/agents", "the folder that npm has installed the others into")
	dayFile     = flag.String("day", "../../../cmd/stockade/testdata/day/go.txtar", "the day to work")
)

// dayModel plays the model of a day for any program: its n-th request that offers tools gets the
// n-th reply, with the calls translated to the tools that the program offers.
type dayModel struct {
	goal, work string
	replies    [][]call

	mu                               sync.Mutex
	next, requests, largest, missing int // missing: requests without the goal
	unknown                          map[string]bool
}

// translate returns a call of stockade's tools as one of the program's; nil: it has no such tool.
func (m *dayModel) translate(c call, offered map[string]bool) *call {
	if offered[c.tool] && (c.tool != "bash" && c.tool != "grep" && c.tool != "glob" || offered["file_read"]) {
		return &c
	}
	arg := func(name string) string { s, _ := c.args[name].(string); return s }
	shell := ""
	quoted := "'" + strings.ReplaceAll(arg("pattern"), "'", `'\''`) + "'"
	path := filepath.Join(m.work, arg("path"))
	switch c.tool {
	case "file_read":
		if offered["read"] {
			return &call{"read", map[string]any{"filePath": path}}
		}
		shell = "cat " + arg("path")
	case "grep":
		if offered["grep"] {
			return &call{"grep", map[string]any{"pattern": arg("pattern")}}
		}
		shell = "grep -rnE " + quoted + " ."
	case "glob":
		if offered["glob"] {
			return &call{"glob", map[string]any{"pattern": arg("pattern")}}
		}
		shell = "find . -type f -not -path './.git/*'"
	case "file_edit":
		if offered["edit"] {
			return &call{"edit", map[string]any{"filePath": path, "oldString": arg("old_string"), "newString": arg("new_string")}}
		}
		var patch strings.Builder
		fmt.Fprintf(&patch, "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: %s\n@@\n", arg("path"))
		patch.WriteString("-" + strings.ReplaceAll(strings.TrimSuffix(arg("old_string"), "\n"), "\n", "\n-") + "\n")
		patch.WriteString("+" + strings.ReplaceAll(strings.TrimSuffix(arg("new_string"), "\n"), "\n", "\n+") + "\n*** End Patch\nEOF")
		shell = patch.String()
	case "git":
		shell = "git " + arg("operation")
	case "bash":
		shell = arg("command")
	default: // lists of tasks differ too much
		return nil
	}
	switch {
	case offered["bash"]:
		return &call{"bash", map[string]any{"command": shell, "description": "a step of the day"}}
	case offered["exec_command"]:
		return &call{"exec_command", map[string]any{"cmd": shell}}
	case offered["shell_command"]:
		return &call{"shell_command", map[string]any{"command": shell}}
	case offered["shell"]:
		return &call{"shell", map[string]any{"command": []string{"bash", "-lc", shell}}}
	}
	m.unknown[c.tool] = true
	return nil
}

func (m *dayModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	parse, reply := parseChat, dayInChat
	if strings.HasSuffix(r.URL.Path, "/responses") {
		parse, reply = parseResponses, dayInResponses
	} else if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return
	}
	a, err := parse(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var calls []call
	if !a.noTools {
		m.requests++
		m.largest = max(m.largest, len(body))
		if !bytes.Contains(body, []byte(m.goal)) {
			m.missing++
		}
		if m.next < len(m.replies) {
			for _, c := range m.replies[m.next] {
				if t := m.translate(c, a.offered); t != nil {
					calls = append(calls, *t)
				}
			}
			m.next++
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	reply(w, m.requests, calls)
}

func dayInChat(w io.Writer, n int, calls []call) {
	chunk := func(delta object, finish any) {
		event(w, "", object{"id": "c", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "scripted", "choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	finish := "stop"
	for i, c := range calls {
		finish = "tool_calls"
		chunk(object{"role": "assistant", "tool_calls": []object{{"index": i, "id": fmt.Sprintf("call_%d_%d", n, i), "type": "function", "function": object{"name": c.tool, "arguments": arguments(&c)}}}}, nil)
	}
	if calls == nil {
		chunk(object{"role": "assistant", "content": "Done."}, nil)
	}
	chunk(object{}, finish)
	event(w, "", object{"id": "c", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "scripted", "choices": []object{}, "usage": object{"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}})
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func dayInResponses(w io.Writer, n int, calls []call) {
	sequence := 0
	send := func(name string, data object) {
		data["type"], data["sequence_number"] = name, sequence
		sequence++
		event(w, name, data)
	}
	response := object{"id": fmt.Sprintf("resp_%d", n), "object": "response", "created_at": 1_700_000_000, "status": "in_progress", "model": "scripted", "output": []object{}}
	send("response.created", object{"response": response})
	var items []object
	for i, c := range calls {
		items = append(items, object{"type": "function_call", "id": fmt.Sprintf("fc_%d_%d", n, i), "call_id": fmt.Sprintf("call_%d_%d", n, i), "name": c.tool, "arguments": arguments(&c), "status": "completed"})
	}
	if items == nil {
		items = []object{{"type": "message", "id": fmt.Sprintf("msg_%d", n), "role": "assistant", "status": "completed", "content": []object{{"type": "output_text", "text": "Done.", "annotations": []object{}}}}}
	}
	for i, item := range items {
		send("response.output_item.added", object{"output_index": i, "item": item})
		send("response.output_item.done", object{"output_index": i, "item": item})
	}
	response["status"], response["output"] = "completed", items
	response["usage"] = object{"input_tokens": 100, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": 20, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 120}
	send("response.completed", object{"response": response})
}

// TestDay has each program work the same day, on the same scripted model, and prints what became of
// it: make bench NAME=day. Each is started as for a run in which nobody is asked.
func TestDay(t *testing.T) {
	file, err := os.ReadFile(*dayFile)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for section := range strings.SplitSeq("\n"+string(file), "\n-- ") {
		name, text, _ := strings.Cut(section, " --\n")
		sections[name] = strings.TrimRight(text, "\n") + "\n"
	}
	prompts := strings.Split(strings.TrimSpace(sections["prompts"]), "\n")
	for i, p := range prompts {
		_, prompts[i], _ = strings.Cut(p, " ")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	m := &dayModel{}
	server := httptest.NewServer(m)
	defer server.Close()
	dir, err := os.MkdirTemp(cache, "stockade-day-") // codex refuses a home in /tmp
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	programs := dayStarts(t, dir, server.URL)
	fmt.Printf("%-9s  %7s  %8s  %13s  %12s  %s\n", "", "seconds", "requests", "largest, KiB", "without goal", "what went wrong")
	for _, p := range programs {
		if err := p.resetHome(); err != nil {
			t.Fatal(err)
		}
		var replies [][]call
		for line := range strings.Lines(sections["model.jsonl"]) {
			var step struct {
				Calls []struct {
					Name      string         `json:"name"`
					Arguments map[string]any `json:"arguments"`
				} `json:"tool_calls"`
			}
			if err := json.Unmarshal([]byte(line), &step); err != nil {
				t.Fatal(err)
			}
			var calls []call
			for _, c := range step.Calls {
				calls = append(calls, call{c.Name, c.Arguments})
			}
			replies = append(replies, calls)
		}
		for name, text := range sections {
			if name, ok := strings.CutPrefix(name, "repo/"); ok {
				if err := os.WriteFile(filepath.Join(p.work(), name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		p.shell(t, "rm -f "+fileName+"; git init -q -b main . && git config user.name Ada && git config user.email ada@example.com && git add . && git commit -qm first")
		p.shell(t, "go vet ./... && go test ./... >/dev/null") // what is compiled is used again, as on a person's machine
		const again = 12                                       // how often the model repeats the call of its loop
		loop := loopOf(replies)
		*m = dayModel{goal: prompts[0][:60], work: p.work(), unknown: map[string]bool{}}
		for i, r := range replies[:loop+1] {
			if m.replies = append(m.replies, r); i == loop {
				for range again - 4 {
					m.replies = append(m.replies, r)
				}
			}
		}
		began := time.Now()
		var wrong []string
		out := p.start(p.turn, prompts[0])
		looped := m.next - loop + 3
		m.mu.Lock()
		m.replies, m.next = replies[loop+1:], 0
		m.mu.Unlock()
		out2 := p.start(p.resume, prompts[1])
		took := time.Since(began)
		wrong = append(wrong, fmt.Sprintf("the loop ended after %d same calls", looped))
		if left := len(m.replies) - m.next; left > 0 {
			wrong = append(wrong, fmt.Sprintf("%d replies of the second turn were not asked for", left))
		}
		for _, check := range strings.Split(strings.TrimSpace(sections["check.sh"]), "\n") {
			for part := range strings.SplitSeq(check, " && ") {
				if said, err := p.command(part).CombinedOutput(); err != nil {
					wrong = append(wrong, fmt.Sprintf("%s: %v", part, err))
					t.Logf("%s: %s", part, said)
				}
			}
		}
		fmt.Printf("%-9s  %7.1f  %8d  %13.0f  %12d  %s\n", p.name, took.Seconds(), m.requests, float64(m.largest)/1024, m.missing, strings.Join(wrong, "; "))
		t.Logf("%s:\n%s\n%s\nno tool for %v", p.name, out, out2, m.unknown)
	}
}

// loopOf returns the index of the fourth of the same replies in a row.
func loopOf(replies [][]call) int {
	same := 1
	for i := 1; i < len(replies); i++ {
		if same++; fmt.Sprint(replies[i]) != fmt.Sprint(replies[i-1]) {
			same = 1
		}
		if same == 4 {
			return i
		}
	}
	return len(replies) - 1
}

// dayStart is a program with the ways in which it is started for a day.
type dayStart struct {
	*program
	resume []string
}

func dayStarts(t *testing.T, dir, server string) (out []dayStart) {
	all, err := listPrograms(*dayPrograms, dir, server)
	if err != nil && len(all) == 0 {
		t.Fatal(err)
	}
	for _, p := range all {
		switch p.name {
		case bench.Ours:
			allow := []string{"--provider", "openai", "--model", "scripted", "--allow", "file_edit", "--allow", "bash below ."}
			out = append(out, dayStart{p, append([]string{"session", "resume", "last"}, allow...)})
			p.turn = append([]string{"run"}, allow...)
		case "codex":
			p.turn = []string{"exec", "-s", "workspace-write"}
			out = append(out, dayStart{p, []string{"exec", "-s", "workspace-write", "resume", "--last"}})
		case "opencode":
			out = append(out, dayStart{p, []string{"run", "--continue"}})
		}
	}
	return out
}

func (p dayStart) command(shell string) *exec.Cmd {
	cmd := exec.Command("bash", "-ec", shell)
	cmd.Dir = p.work()
	return cmd
}

func (p dayStart) shell(t *testing.T, commands string) {
	if out, err := p.command(commands).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
}

// start runs the program with a prompt, and returns what it printed.
func (p dayStart) start(args []string, prompt string) string {
	cmd := exec.Command(p.argv[0], append(append(append([]string{}, p.argv[1:]...), args...), prompt)...)
	cmd.Dir = p.work()
	cmd.Env = append([]string{"HOME=" + p.home(), "PATH=" + os.Getenv("PATH"), "TERM=dumb", "LANG=C.UTF-8"}, p.env...)
	stop := time.AfterFunc(deadline, func() { _ = cmd.Process.Kill() })
	defer stop.Stop()
	out, err := cmd.CombinedOutput()
	return fmt.Sprintf("%.6000s\n%v", out, err)
}
