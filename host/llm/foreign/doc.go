// Package foreign holds only tests: it checks the wire formats of the providers against
// servers, clients and types that others wrote. make test-providers runs the tests and
// writes into TABLE.md which cases were proven, and against which server.
//
//   - aimock plays the conversations of testdata/conversations.json in the formats of
//     OpenAI, Anthropic, Google and Ollama, and refuses what it does not know.
//   - LiteLLM's proxy stands before aimock. It reads one format and translates it into
//     another: a part of a request that it does not understand does not arrive.
//   - The vendors' own libraries for Python have types for each request. Each request of
//     our providers is checked with these types, and may have no unknown fields.
//   - LiteLLM's client, OpenAI's, opencode and codex talk to stockade model serve.
package foreign
