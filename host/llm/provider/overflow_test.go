package provider

import (
	"testing"

	"github.com/stockade-dev/stockade/host/llm"
)

// TestConversationsThatDoNotFit checks errors in the words of servers, shortened.
func TestConversationsThatDoNotFit(t *testing.T) {
	fits := map[string]string{
		"OpenAI, a code alone":       `{"error":{"message":"refused","code":"context_length_exceeded"}}`,
		"OpenAI, chat":               `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 10000 tokens. Please reduce the length of the messages.","type":"invalid_request_error"}}`,
		"OpenAI, responses":          `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again."}}`,
		"OpenAI, configured":         `{"error":{"message":"Input tokens exceed the configured limit of 272000 tokens."}}`,
		"llama.cpp, a type":          `{"error":{"code":400,"message":"no","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}`,
		"llama.cpp":                  `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it"}}`,
		"llama.cpp, newer":           `{"error":{"message":"request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it"}}`,
		"llama.cpp, on the way":      `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`,
		"llama-cpp-python":           `{"error":{"message":"Requested tokens (5000) exceed context window of 4096"}}`,
		"LM Studio":                  `{"error":{"message":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length"},"message":"x"}`,
		"LM Studio, older":           `{"error":"Trying to keep the first 6269 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`,
		"LM Studio, llama.cpp":       `{"error":"Cannot truncate prompt with n_keep (13575) >= n_ctx (4096)"}`,
		"LM Studio, on the way":      `{"error":"Reached context length of 4096 tokens with model (arch: x) that does not currently support mid-generation context overflow."}`,
		"vLLM":                       `{"error":{"message":"This model's maximum context length is 32768 tokens. However, your request has 40000 input tokens.","type":"BadRequestError","code":400}}`,
		"vLLM, older, flat":          `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 in the messages, 500 in the completion).","code":400}`,
		"vLLM, newer":                `{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 0 output tokens and your prompt contains at least 8193 input tokens, for a total of at least 8193 tokens. (parameter=input_tokens, value=8193)"}}`,
		"vLLM, of a decoder":         `{"error":{"message":"The decoder prompt (length 8357) is longer than the maximum model length of 8192."}}`,
		"OpenRouter":                 `{"error":{"message":"This endpoint's maximum context length is 131072 tokens. However, you requested about 200000 tokens (199000 of text input, 1000 of tool input).","code":400}}`,
		"OpenRouter, behind it":      `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 210000 tokens > 200000 maximum\"}}"}}}`,
		"LiteLLM":                    `{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: Hosted_vllmException - no. Received Model Group=x","code":"400"}}`,
		"Ollama":                     `{"error":"the input length exceeds the context length"}`,
		"Ollama, cloud":              `{"error":{"message":"prompt too long; exceeded max context length by 1200 tokens"}}`,
		"Groq":                       `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error"}}`,
		"Mistral":                    `{"object":"error","message":"Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length","code":"3051"}`,
		"DeepSeek":                   `{"error":{"message":"This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (70000 in the messages, 0 in the completion).","code":"invalid_request_error"}}`,
		"Anthropic":                  `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}`,
		"Anthropic, with the answer": "{\"type\":\"error\",\"error\":{\"message\":\"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again\"}}",
		"Google":                     `[{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}]`,
		"Google, without numbers":    `{"error":{"message":"The input token count exceeds the maximum number of tokens allowed 1048576."}}`,
		"Bedrock":                    `{"error":{"message":"litellm.BadRequestError: BedrockException - {\"message\":\"Input is too long for requested model.\"}"}}`,
		"Bedrock, Nova":              `{"message":"Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again."}`,
		"TGI":                        "{\"error\":\"Input validation error: `inputs` must have less than 4096 tokens. Given: 4545\",\"error_type\":\"validation\"}",
		"TGI, with the answer":       "{\"error\":{\"message\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8000 `inputs` tokens and 1000 `max_new_tokens`\"}}",
		"SGLang, Together":           `{"error":{"message":"The input (516368 tokens) is longer than the model's context length (262144 tokens)."}}`,
		"Fireworks":                  `{"error":{"message":"The prompt is too long: 1000008, model maximum context length: 131071"}}`,
		"a server of DeepSeek":       `{"error":{"message":"Prompt has 140,000 tokens, but the configured context size is 131,072 tokens"}}`,
		"another server":             `{"error":"Context limit is 49152 tokens; prompt=51402 leaves 0 output tokens"}`,
		"xAI":                        `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 150000 tokens."}`,
		"Copilot":                    `{"error":{"message":"prompt token count of 139000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}`,
		"GitHub":                     `{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 8000 tokens."}}`,
		"Moonshot":                   `{"error":{"message":"Invalid request: Your request exceeded model token limit: 8192 (requested: 10000)","type":"invalid_request_error"}}`,
		"MiniMax":                    `{"error":{"message":"invalid params, context window exceeds limit (2013)"}}`,
		"GLM":                        `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`,
		"DashScope":                  `{"error":{"message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]"}}`,
		"Cohere":                     `{"message":"too many tokens: size limit exceeded by 713295 tokens. Try using shorter or fewer inputs."}`,
	}
	others := map[string]string{
		"the answer, OpenAI":         `{"error":{"message":"max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.","param":"max_tokens"}}`,
		"the answer, vLLM":           `{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 5000 input tokens (4096 > 8192 - 5000)."}}`,
		"the answer, vLLM, newer":    `{"error":{"message":"max_tokens=9000 cannot be greater than max_model_len=max_total_tokens=8192. Please request fewer output tokens."}}`,
		"the answer, behind LiteLLM": `{"error":{"message":"litellm.BadRequestError: OpenAIException - 'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens"}}`,
		"the answer, Anthropic":      `{"error":{"message":"max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for x"}}`,
		"the answer, Bedrock":        `{"message":"The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower."}`,
		"the answer, OpenRouter":     `{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 64000 tokens, but can only afford 2000.","code":402}}`,
		"a minute, OpenAI":           `{"error":{"message":"Rate limit reached for x in organization y on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000.","type":"tokens","code":"rate_limit_exceeded"}}`,
		"a minute, too large":        `{"error":{"message":"Request too large for x on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced in order to run successfully."}}`,
		"a minute, Anthropic":        `{"error":{"message":"This request would exceed the rate limit for your organization of 40,000 input tokens per minute."}}`,
		"a minute, Google":           `{"error":{"message":"Quota exceeded for metric: generate_content_free_tier_input_token_count, limit: 250000. input token count exceeds the maximum"}}`,
		"a day, Groq":                `{"error":{"message":"Request too large on tokens per day (TPD): Limit 100000, Requested 120900, please reduce your message size and try again."}}`,
		"throttling, Bedrock":        `{"message":"ThrottlingException: Too many tokens, please wait before trying again."}`,
		"a long text":                `{"error":{"message":"Invalid 'messages[3].content': string too long. Expected a string with maximum length 1048576","code":"string_above_max_length"}}`,
		"a schema":                   `{"error":{"message":"Invalid schema for function 'read': In context=('properties', 'path'), schema must have a 'type' key."}}`,
		"many tools":                 `{"error":{"message":"Invalid 'tools': array too long. Expected an array with maximum length 128"}}`,
		"a model that is not loaded": `{"error":{"message":"failed to load the model: the maximum context length is not available"}}`,
		"fallbacks of LiteLLM":       `{"error":{"message":"litellm.NotFoundError: no such model. Available Model Group Fallbacks=None context_window_fallbacks=None"}}`,
		"a deadline":                 `{"error":{"message":"context deadline exceeded"}}`,
	}
	c := &Client{Options: Options{Name: "test"}}
	for want, texts := range map[bool]map[string]string{true: fits, false: others} {
		for name, text := range texts {
			for _, status := range []int{200, 400, 500} {
				e := c.StreamError(parseErrorBody([]byte(text)), []byte(text))
				if status != 200 {
					e = c.statusError(status, nil, []byte(text))
				}
				if known := e.Code == llm.ContextExceeded; known != want || known && (e.Retryable || e.CanFailOver() || e.Hint == "") {
					t.Errorf("%s, %d: got %+v", name, status, e)
				}
			}
		}
	}
}
