// Package foreign holds no code but tests: it proves the wire formats of the providers
// against servers, clients and types that others wrote. make test-providers runs them and
// writes what was proven against what into TABLE.md.
//
//   - aimock plays the conversations of testdata/conversations.json in the formats of
//     OpenAI, Anthropic, Google and Ollama, and refuses what it does not know.
//   - LiteLLM's proxy stands before it, speaks one format and translates it into
//     another: what it has not understood of a request does not arrive.
//   - The vendors' own libraries for Python carry types of each request: what our
//     providers have sent is checked with these, and no field may be there that
//     they do not know.
//   - LiteLLM's client, OpenAI's, opencode and codex talk to stockade model serve.
package foreign
