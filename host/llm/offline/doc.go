// Package offline is for trying and testing without a provider, a key or a network.
//
// [Planner] is the offline model. It is not a language model: it knows a few
// fixed phrases, such as "list files in src then read go.mod", turns each into
// one tool call, and quotes what the tools answered. What it does not
// understand, it says.
//
// [Server] serves a [Responder] in the wire formats of OpenAI's chat completions and
// responses, so that any client of these can be tried on it: the Planner, or a [Script],
// which plays back what a test or a demo has written down, faults included.
package offline
