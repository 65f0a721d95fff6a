package offline

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/openai"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

func script(t testing.TB, lines ...string) *Script {
	t.Helper()
	s, err := ParseScript("demo.jsonl", strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScriptErrorsNameTheLine(t *testing.T) {
	tests := []struct {
		name, script, want string
	}{
		{"not JSON", "{\"text\":\"a\"}\n\n# a comment\n{\"text\":", "demo.jsonl:4: unexpected EOF"},
		{"an unknown key", `{"txt":"a"}`, `demo.jsonl:1: json: unknown field "txt"`},
		{"two values", `{"text":"a"} {"text":"b"}`, "demo.jsonl:1: more than one JSON value"},
		{"nothing to answer", `{"expect":["a"]}`, "demo.jsonl:1: the line answers nothing"},
		{"two faults", `{"empty":true,"flood":true}`, "demo.jsonl:1: a line is one of"},
		{"a text with an error", `{"text":"a","error":{"message":"b"}}`, "demo.jsonl:1: a line is one of"},
		{"a status that is none", `{"status":42}`, "demo.jsonl:1: status 42"},
		{"a negative size", `{"text":"a","cut_after_bytes":-1}`, "demo.jsonl:1: cut_after_bytes"},
		{"no line", "# nothing\n\n// at all\n", "demo.jsonl: the script has no answers"},
		{"too long", `{"text":"` + strings.Repeat("a", maxScriptBytes) + `"}`, "demo.jsonl: more than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseScript("demo.jsonl", strings.NewReader(tt.script))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// TestScriptAssertsWhatComesBack runs a turn whose script expects the result of its call.
func TestScriptAssertsWhatComesBack(t *testing.T) {
	s := script(t,
		`# The model looks, and gets what the tool found.`,
		`{"tool_calls":[{"id":"a","name":"ls","arguments":{"path":"."}}],"expect":["list the \"files\"","\"stream\":true"],"expect_not":["secret"]}`,
		`{"text":"There are two.","expect":["\"tool_success\":true","a.txt\nsrc/"]}`)
	model := openai.New(provider.Options{BaseURL: "http://model.test/v1", HTTPClient: llmtest.Serve(t, NewServer(s, ""))})
	messages := turn(t, model, []llm.Message{user(`list the "files"`)}, allTools, results)
	if got := messages[len(messages)-1]; got.Content != "There are two." || s.Remaining() != 0 {
		t.Errorf("got %+v, %d lines are left", got, s.Remaining())
	}
}

func TestScriptRefusesWhatItDoesNotExpect(t *testing.T) {
	ask := func(t *testing.T, s *Script) string {
		t.Helper()
		model := openai.New(provider.Options{BaseURL: "http://model.test/v1", HTTPClient: llmtest.Serve(t, NewServer(s, ""))})
		_, err := llmtest.Collect(t.Context(), t, model, llmtest.Request())
		failure, ok := errors.AsType[*llm.ProviderError](err)
		if !ok || failure.Status != http.StatusBadRequest || failure.Retryable {
			t.Fatalf("got %+v, want a refusal that is not retried", err)
		}
		return failure.Message
	}
	t.Run("a text that is missing, again and again", func(t *testing.T) {
		s := script(t, "", `{"text":"a","expect":["C files","no such text"]}`)
		for range 2 {
			if got, want := ask(t, s), `demo.jsonl:2: the request does not contain "no such text"`; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		if s.Remaining() != 1 {
			t.Errorf("the line was used")
		}
	})
	t.Run("a text that must not be there", func(t *testing.T) {
		if got, want := ask(t, script(t, `{"text":"a","expect_not":["sandbox"]}`)), `demo.jsonl:1: the request contains "sandbox"`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("one request too many", func(t *testing.T) {
		s := script(t, `{"status":400}`)
		ask(t, s)
		if got, want := ask(t, s), "the script demo.jsonl is used up"; !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func FuzzParseScript(f *testing.F) {
	f.Add(`{"text":"a","tool_calls":[{"id":"a","name":"x","arguments":"{"}],"chunk_bytes":3,"usage":{"input_tokens":1}}`)
	f.Add(`{"status":429,"headers":{"Retry-After":"0"},"error":{"message":"m","code":"c"}}` + "\n{\"raw\":\"\"}")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseScript("f", strings.NewReader(text))
		if (err == nil) != (s != nil && s.Remaining() > 0) {
			t.Errorf("got %v, %v", s, err)
		}
	})
}

func ExampleParseScript() {
	_, err := ParseScript("demo.jsonl", strings.NewReader("{\"text\":\"Hello\"}\n{\"status\":99}\n"))
	fmt.Println(err)
	// Output: demo.jsonl:2: status 99 is not one of 200 to 599
}

func TestFirstPieceKeepsCharactersWhole(t *testing.T) {
	var got []string
	for s := "aé世\xffb"; s != ""; {
		piece := firstPiece(s, 2)
		got = append(got, piece)
		s = s[len(piece):]
	}
	if diff := cmp.Diff([]string{"a", "é", "世", "\xffb"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
