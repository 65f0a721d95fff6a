package ollama

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/offline"
	"github.com/stockade-dev/stockade/host/tool"
)

// scripted is a server with Ollama's API that answers with the lines of a script in the
// format of [offline.Script].
type scripted struct {
	script *offline.Script
	show   string // what it says of each model, with "404 " before it if it is an error; "": it does not know the question
	ps     string
	unused int // lines of the script that no request gets to
}

// serve serves a script in memory and checks that the whole script was used.
func serve(t testing.TB, s scripted, script ...string) *http.Client {
	t.Helper()
	if strings.Join(script, "") == "" {
		script = []string{`{"text":"never said"}`}
		s.unused = 1
	}
	var err error
	if s.script, err = offline.ParseScript("script", strings.NewReader(strings.Join(script, "\n"))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := s.script.Remaining(); n != s.unused {
			t.Errorf("%d lines of the script were not used", n)
		}
	})
	return llmtest.Serve(t, s)
}

func (s scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "POST /api/show":
		say(w, s.show)
	case "GET /api/ps":
		say(w, s.ps)
	case "POST /api/chat":
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client left
		}
		if complaint := complain(body); complaint != "" {
			w.WriteHeader(http.StatusBadRequest)
			w.Write(tool.Marshal(map[string]string{"error": complaint}))
			return
		}
		answer := s.script.Respond(r.Context(), &offline.Request{Body: body})
		for name, value := range answer.Fault.Headers {
			w.Header().Set(name, value)
		}
		s.answer(w, r, answer)
	default:
		http.NotFound(w, r)
	}
}

func say(w http.ResponseWriter, answer string) {
	switch rest, missing := strings.CutPrefix(answer, "404 "); {
	case answer == "":
		http.Error(w, "404 page not found", http.StatusNotFound)
	case missing:
		http.Error(w, rest, http.StatusNotFound)
	default:
		io.WriteString(w, answer)
	}
}

// complain returns the error that Ollama's own types would cause for a request.
func complain(body []byte) string {
	type message struct {
		Role, Content string
		Images        [][]byte
		ToolCalls     []struct {
			Function struct {
				Name      string
				Arguments map[string]any
			}
		} `json:"tool_calls"`
		ToolName string `json:"tool_name"`
	}
	var req struct {
		Model           string
		Stream          bool
		Truncate, Shift *bool
		Options         struct {
			NumCtx int `json:"num_ctx"`
		}
		Messages []message
		Tools    []struct {
			Type     string
			Function struct {
				Name, Description string
				Parameters        parameters
			}
		}
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if err := dec.Decode(&req); err != nil {
		return err.Error()
	}
	switch {
	case req.Model == "" || !req.Stream || req.Options.NumCtx <= 0 || len(req.Messages) == 0:
		return "model, stream, options.num_ctx or messages are missing"
	case req.Truncate == nil || *req.Truncate || req.Shift == nil || *req.Shift:
		return "the request may be cut"
	}
	for i, m := range req.Messages {
		if m.Role == "tool" && m.ToolName == "" || m.Role != "user" && m.Images != nil {
			return fmt.Sprintf("messages[%d] has the wrong fields for %s", i, m.Role)
		}
	}
	return ""
}

func (s scripted) answer(w http.ResponseWriter, r *http.Request, a offline.Answer) {
	stall := func() {
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	status := cmp.Or(a.Fault.Status, http.StatusOK)
	w.Header().Set("Content-Type", "application/x-ndjson")
	switch {
	case a.Fault.Raw != nil:
		w.WriteHeader(status)
		io.WriteString(w, *a.Fault.Raw)
	case a.Fault.Error != nil || status != http.StatusOK:
		w.WriteHeader(status)
		w.Write(tool.Marshal(map[string]any{"error": a.Fault.Error}))
	case a.Fault.Empty:
	case a.Fault.Flood:
		for r.Context().Err() == nil {
			if _, err := w.Write(bytes.Repeat([]byte("x"), 64<<10)); err != nil {
				return
			}
		}
	case a.Fault.Stall && a.Text == "" && len(a.Calls) == 0:
		stall()
	default:
		answer := lines(a)
		if a.Fault.CutAfter > 0 && a.Fault.CutAfter < len(answer) {
			answer = answer[:a.Fault.CutAfter]
		}
		for line := range bytes.Lines(answer) {
			w.Write(line)
			http.NewResponseController(w).Flush()
		}
		if a.Fault.CutAfter > 0 {
			panic(http.ErrAbortHandler)
		}
		if a.Fault.Stall {
			stall()
		}
	}
}

// lines returns an answer in the form of Ollama's streams: the text in pieces, each call
// whole, with its arguments as an object if possible.
func lines(a offline.Answer) []byte {
	var out bytes.Buffer
	line := func(fields map[string]any) {
		fields["model"], fields["created_at"] = "test-model", "2026-11-26T13:00:00Z"
		out.Write(append(tool.Marshal(fields), '\n'))
	}
	for _, part := range []struct{ field, text string }{{"thinking", a.Reasoning}, {"content", a.Text}} {
		for text := part.text; text != ""; {
			n := min(cmp.Or(a.ChunkBytes, 8), len(text))
			for n < len(text) && !utf8.RuneStart(text[n]) {
				n++
			}
			line(map[string]any{"message": map[string]any{"role": "assistant", part.field: text[:n]}, "done": false})
			text = text[n:]
		}
	}
	for _, c := range a.Calls {
		function := map[string]any{"name": c.Function.Name, "index": 0}
		if args := c.Function.Arguments; json.Valid([]byte(args)) {
			function["arguments"] = json.RawMessage(args)
		} else if args != "" {
			function["arguments"] = args
		}
		call := map[string]any{"function": function}
		if c.ID != "" {
			call["id"] = c.ID
		}
		line(map[string]any{"message": map[string]any{"role": "assistant", "content": "", "tool_calls": []any{call}}, "done": false})
	}
	if a.Fault.Stall {
		return out.Bytes()
	}
	end := map[string]any{"message": map[string]any{"role": "assistant", "content": ""}, "done": true, "done_reason": "stop", "total_duration": 1}
	if a.Finish == "length" {
		end["done_reason"] = "length"
	}
	if a.Usage != nil {
		end["prompt_eval_count"], end["eval_count"] = a.Usage.InputTokens, a.Usage.OutputTokens
	}
	line(end)
	return out.Bytes()
}
