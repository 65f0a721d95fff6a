package provider

import (
	"cmp"
	"regexp"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/llm"
)

// tooLong matches the code or the message of an error about a conversation that exceeds the
// context of the model. Some servers send it with the status 500.
var tooLong = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?i)" + strings.Join([]string{
		`context_(length|window)_exceeded|model_max_prompt_tokens_exceeded|tokens_limit_reached`, // OpenAI, Groq, Cerebras; Copilot; GitHub
		`exceed_context_size|context (length|size|window) (has been |is |was )?exceeded`,         // llama.cpp, MLX
		`ContextWindowExceeded`,                             // LiteLLM
		`max(imum)? context (length|limit)( is| of|:)? ?\d`, // OpenAI, vLLM, DeepSeek, OpenRouter, Fireworks
		`exceed(s|ed)? (the )?((this )?model.?s |available |max(imum)? )*context (length|size|window|limit)`, // OpenAI, llama.cpp, Ollama, SGLang, Anthropic
		`(greater|longer) than the (model.?s )?(context length|maximum model length)`,                        // LM Studio, SGLang, Together, vLLM
		`context (length|size|limit) (of only|of|is) [\d,]+ tokens|n_keep[ ()\d]*>= n_ctx`,                   // LM Studio
		`prompt (\(\d+ tokens\) )?(is )?too long|input is too long for requested model`,                      // Anthropic, Ollama, vLLM; Bedrock
		`input tokens? (count )?(\(\d+\) )?exceeds? (the )?(configured |maximum )`,                           // Google, OpenAI, Bedrock
		`maximum prompt length is \d|prompt token count of \d+ exceeds`,                                      // xAI; Copilot
		`reduce the length of the (input )?(messages|prompt)`,                                                // Groq, Cerebras
		`too large for model with \d+ maximum context|range of input length should be`,                       // Mistral; DashScope
		`context window exceeds limit|exceeded model token limit|prompt exceeds max length`,                  // MiniMax; Moonshot; GLM
		`inputs\W* (must have less than \d+ tokens|tokens \+ \W?max_new_tokens\W? must be)`,                  // TGI, Together
		`total number of tokens in the prompt|too many tokens: size limit exceeded`,                          // Cohere
	}, "|"))
})

// notTooLong matches errors with similar words about other limits: the length of the answer, and
// the number of tokens of an account per time.
var notTooLong = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(: |- )\W*max_\w*tokens\b|rate.?limit|quota|too many requests|throttl|per (min|hour|day)`)
})

// markContextExceeded reports whether an error is about a conversation that exceeds the
// context of the model. It sets the code and the hint of such an error.
func markContextExceeded(e *llm.ProviderError, detail ErrorDetail) bool {
	text := cmp.Or(detail.Message, e.Message)
	text = detail.Code + " " + detail.Kind + ": " + text[:min(len(text), maxErrorBytes)]
	if !tooLong().MatchString(text) || notTooLong().MatchString(text) {
		return false
	}
	e.Code, e.Retryable = llm.ContextExceeded, false
	e.Hint = "the conversation does not fit into the context of the model: set model.context_tokens to what the model holds, or start a new one; a server of your own may load the model with a larger context"
	return true
}
