// Package offline provides a model and a server for trials and tests without a provider, a
// key or a network.
//
// [Planner] is the offline model. It is not a language model: it knows a few fixed phrases,
// such as "list files in src then read go.mod". It makes a tool call for each phrase, and
// describes the results of the tools. It lists the phrases that it does not understand.
//
// [Server] serves a [Responder] in the wire formats of OpenAI's chat completions and
// responses APIs, for any client of these. A Responder is the Planner, or a [Script], which
// plays back the answers that a test or a demo has written down, faults included.
package offline
