// Package agent runs the loop of an agent: a prompt goes in, the model is asked step by step, its
// tool calls are carried out and their results go back, until it answers.
//
// A turn leads from a prompt to its answer; a step is one reply of the model. The results of
// its calls go back in the order of the calls. The agent ends a turn if the model makes the
// same calls again and again without a new result, or keeps writing calls as text. [Agent.Run]
// yields every event of the session as it happens: terminal, JSON output and replay read the
// same stream. The conversation is built from the recorded events, in a running turn and by
// [ReadConversation] when a session is resumed: the model reads the log.
//
// A request has a budget: the context of the model in tokens, and perhaps a number of
// characters. What a request leaves out to stay below it, later requests leave out, too; this is
// an event. Parts of messages go first: old results, arguments, thoughts and images. Then a
// summary stands for old calls and answers. The words of a person stay.
package agent
