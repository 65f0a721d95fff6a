// Package agent is the loop: a prompt goes in, the model is asked step by step,
// its tool calls are carried out and their results go back, until it answers.
//
// A turn is prompt to answer, a step one reply of the model. The results of its
// calls go back in the order of the calls. A turn is ended that makes the same calls again
// and again and comes to nothing new, or that keeps on writing calls as text.
// [Agent.Run] yields every event of the session as it happens: terminal, JSON
// output and replay read the same stream. The conversation is made of the events
// that are recorded, as they are recorded, and by [ReadConversation] when a session is
// resumed: the log is what the model reads.
package agent
