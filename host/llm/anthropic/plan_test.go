package anthropic

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
)

// TestARefusedRequestIsMadeOtherwise uses servers that refuse the form of a request, in the
// words of Anthropic's API and of others. It asks twice, because an accepted form is remembered.
func TestARefusedRequestIsMadeOtherwise(t *testing.T) {
	most := func(n int, words string) func(*request) string {
		return func(r *request) string {
			if r.MaxTokens > n {
				return fmt.Sprintf(words, r.MaxTokens, n)
			}
			return ""
		}
	}
	only := func(form, words string) func(*request) string {
		return func(r *request) string {
			if r.Thinking != nil && r.Thinking.Type != form {
				return words
			}
			return ""
		}
	}
	tests := []struct {
		name, model string
		refuse      func(*request) string
		want        []string // of the two requests that were taken
		refused     int      // of all
	}{
		{"a model that writes less", "claude-opus-4-1-20250805",
			most(32000, "max_tokens: %d > %d, which is the maximum allowed number of output tokens for claude-opus-4-1-20250805"),
			[]string{"32000 enabled 16000", "32000 enabled 16000"}, 1},
		{"a model that writes much less", "m", most(300, "The parameter `max_tokens` specified in the request is not valid: expected a value <= %[2]d, but got %[1]d instead."),
			[]string{"300 adaptive high", "300 adaptive high"}, 1},
		{"a server that names a range", "m", most(8192, "Invalid max_tokens value %d, the valid range of max_tokens is [1, %d]"), []string{"8192 adaptive high", "8192 adaptive high"}, 1},
		{"a context that is nearly full, which another conversation's is not", "m",
			most(11760, "input length and `max_tokens` exceed context limit: 188240 + %d > 200000, decrease input length or `max_tokens` and try again"),
			[]string{"11760 adaptive high", "11760 adaptive high"}, 2},
		{"a model that has to be given a budget", "m", only("enabled", "adaptive thinking is not supported on this model"), []string{"64000 enabled 32000", "64000 enabled 32000"}, 1},
		{"a model that takes no budget", "claude-sonnet-4-5-as-of-later",
			only("adaptive", `"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`),
			[]string{"64000 adaptive high", "64000 adaptive high"}, 1},
		{"a model that writes too little to think within a budget", "claude-3-7-sonnet", most(2000, "max_tokens: %d > %d"),
			[]string{"2000 without thinking", "2000 without thinking"}, 1},
		{"both at once", "m", func(r *request) string {
			return most(4096, "max_tokens: %d > %d")(r) + only("enabled", "output_config.effort: Extra inputs are not permitted")(r)
		}, []string{"4096 enabled 2048", "4096 enabled 2048"}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &server{refuse: tt.refuse}
			opts := scripted(t, s, yes, yes)
			opts.ReasoningEffort = "high"
			model := New(opts)
			for range 2 {
				req := llmtest.Request()
				req.Model = tt.model
				if _, err := llmtest.Collect(t.Context(), t, model, req); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, r := range s.requests {
				line := fmt.Sprint(r.MaxTokens, " without thinking")
				if r.Thinking != nil && r.Thinking.BudgetTokens > 0 {
					line = fmt.Sprint(r.MaxTokens, " ", r.Thinking.Type, " ", r.Thinking.BudgetTokens)
				} else if r.Thinking != nil {
					line = fmt.Sprint(r.MaxTokens, " ", r.Thinking.Type, " ", r.OutputConfig.Effort)
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || len(s.refused) != tt.refused {
				t.Errorf("%d requests were refused, want %d; taken (-want +got):\n%s", len(s.refused), tt.refused, diff)
			}
		})
	}
}

func TestARequestThatIsRefusedWhateverItAsks(t *testing.T) {
	tests := []struct {
		name, said string
		hint       string
		requests   int
	}{
		{"for another reason", "tools.0.custom.name: String should match pattern", "", 1},
		{"for its thinking", "thinking is not supported", "reasoning", 2},
		{"for tokens, without a number", "max_tokens is wrong", "", 1},
		{"for tokens, with numbers that help nobody", "max_tokens: 64000 > 64001, see section 12", "", 1},
		{"for tokens, again and again", "max_tokens must be below 60000, 50000, 40000, 30000, 20000 and 10000", "", maxTries},
		{"for its length", "prompt is too long: 210000 tokens > 200000 maximum", "does not fit", 1},
		{"for its length, with tokens", "input length and `max_tokens` exceed context limit: 199990 + 64000 > 200000", "does not fit", 1},
		{"for a signature, of which there is none", "Invalid `signature` in `thinking` block", "reasoning", 2}, // the word thinking may mean how it was asked for
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &server{refuse: func(*request) string { return tt.said }}
			opts := scripted(t, s)
			opts.ReasoningEffort = "high"
			_, _, err := ask(t, New(opts), s, user("u"))
			failure, ok := err.(*llm.ProviderError)
			if !ok || failure.Message != tt.said || failure.Status != http.StatusBadRequest || failure.Retryable || !strings.Contains(failure.Hint, tt.hint) || (tt.hint == "") != (failure.Hint == "") {
				t.Errorf("got %+v", err)
			}
			if len(s.refused) != tt.requests {
				t.Errorf("it was asked %d times, want %d", len(s.refused), tt.requests)
			}
		})
	}
}

// TestATurnWithoutThinkingGoesOn checks a turn without thinking. With a budget, the API
// requires that a turn begins with thinking.
func TestATurnWithoutThinkingGoesOn(t *testing.T) {
	s := &server{refuse: func(r *request) string {
		last := r.Messages[len(r.Messages)-2].Content[0].Type
		if r.Thinking != nil && last != "thinking" && last != "redacted_thinking" {
			return "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block."
		}
		return ""
	}}
	opts := scripted(t, s, yes)
	opts.ReasoningEffort, opts.Model = "high", "claude-haiku-4-5"
	req := llm.Request{Messages: []llm.Message{user("u"), called("a"), returned("a", "found")}, Tools: llmtest.Request().Tools}
	if _, err := llmtest.Collect(t.Context(), t, New(opts), req); err != nil || s.requests[0].Thinking != nil || len(s.refused) != 1 {
		t.Errorf("%v, refused %q", err, s.refused)
	}
}

func TestAModelIsAskedToThinkInItsForm(t *testing.T) {
	for model, want := range map[string]thinking{
		"claude-3-7-sonnet-20250219": thinkingBudgeted, "claude-opus-4-20250514": thinkingBudgeted, "claude-opus-4-1": thinkingBudgeted, "claude-sonnet-4-5": thinkingBudgeted,
		"claude-haiku-4-5-20251001": thinkingBudgeted, "claude-opus-4-6": thinkingAdaptive, "claude-sonnet-4-6": thinkingAdaptive, "claude-opus-4-7": thinkingAdaptive,
		"claude-opus-5": thinkingAdaptive, "claude-sonnet-5-5": thinkingAdaptive, "claude-haiku-5-5": thinkingAdaptive, "claude-fable-5-1": thinkingAdaptive, "another": thinkingAdaptive,
	} {
		if got := thinkingOf(model); got != want {
			t.Errorf("%s: %s, want %s", model, got, want)
		}
	}
}
