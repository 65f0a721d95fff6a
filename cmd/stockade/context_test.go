package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/agent"
	"github.com/stockade-dev/stockade/host/llm"
)

func TestThePictureOfTheContext(t *testing.T) {
	cost := 1.5
	tests := []struct {
		name string
		c    agent.ContextReport
		want string
	}{{
		name: "of a new session where nothing is known",
		c:    agent.ContextReport{System: 400, Tools: 5_600, Tokens: 2_000, Limit: 128_000, Assumed: true},
		want: `  t...........................................................................
  about 2,000 of 128,000 tokens: 2 %
  the size of the context is assumed; model.context_tokens sets it

  what fills a request         characters
  s system prompt, AGENTS.md         400   7 %  #
  t definitions of the tools       5,600  93 %  ##########################

  the session: 0 turns
`,
	}, {
		name: "of a long one, of which not all fits",
		c: agent.ContextReport{
			System: 1_000, Tools: 9_000, Prompts: 20_000, Answers: 30_000, Calls: 100_000, Results: 239_000, Budget: 400_000, Tokens: 127_999, Limit: 128_000,
			ByTool:  map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 338_989, "what the model calls a tool\n\x1b[2J": 1_000},
			LeftOut: agent.LeftOut{Parts: 12, Chars: 1_234_567},
			Spent:   agent.Spent{Turns: 9, Usage: llm.Usage{InputTokens: 1_000_000, OutputTokens: 2_000, CachedTokens: 800_000, ReasoningTokens: 500}, Last: llm.Usage{InputTokens: 127_000, OutputTokens: 999}, Cost: &cost},
		},
		want: `  tppppaaaaaacccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc.
  127,999 of 128,000 tokens: 100 %
  390,000 of 400,000 characters (history_char_budget): 98 %

  what fills a request         characters
  s system prompt, AGENTS.md       1,000  <1 %  #
  t definitions of the tools       9,000   2 %  #
  p prompts                       20,000   5 %  #
  a answers                       30,000   8 %  ##
  c calls and results            339,000  85 %  #######################
      e                          338,989  85 %  #######################
      what the model c ...         1,000  <1 %  #
      d                                4  <1 %  #
      c                                3  <1 %  #
      b                                2  <1 %  #
  left out, so that it fits: 1,234,567 characters of 12 parts

  the session: 9 turns, 1,000,000 tokens sent, 2,000 received, $1.50
    of those sent 800,000 came from the provider's cache
    of those received 500 were its reasoning
`,
	}, {
		name: "of a model that holds less than it was sent",
		c:    agent.ContextReport{System: 10, Tokens: 3_000, Limit: 1_000, Spent: agent.Spent{Turns: 1, Last: llm.Usage{InputTokens: 3_000}, Usage: llm.Usage{InputTokens: 3_000}}},
		want: `  ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
  3,000 of 1,000 tokens: 300 %

  what fills a request         characters
  s system prompt, AGENTS.md          10  100 %  ############################

  the session: 1 turn, 3,000 tokens sent, 0 received
`,
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := contextPicture(tt.c)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for row := range strings.Lines(got) {
				if terminal.Width(strings.TrimSuffix(row, "\n")) > 80 {
					t.Errorf("too wide: %s", row)
				}
			}
		})
	}
}
