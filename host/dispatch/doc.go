// Package dispatch is the one door to every tool, for the agent and for
// `stockade call` alike: [Dispatcher.Call] carries out one call and reads from
// top to bottom as the security story.
//
// A call is idle until it comes here, and then goes through the states
// evaluating_policy, awaiting_permission (if policy asks), executing and
// completed; each is shown as an event of the session. A call that is refused on the way goes to completed at
// once. What was decided, who answered and that the call is about to run
// are durable before it runs; its result is recorded whatever became of it.
package dispatch
