// Package dispatch is the one way to every tool, for the agent and for
// `stockade call` alike. [Dispatcher.Call] carries out one call, and
// [Dispatcher.CallAll] those of one reply, side by side where they only read. What
// a call goes through is in call.go, and reads from top to bottom as the security
// story. Of a session that goes on, [Dispatcher.Resume] counts what it has used
// before. Of many tools, [Dispatcher.Definitions] offers groups, see groups.go.
// [Dispatcher.Undo] puts back what a turn has changed, as a call of a person.
//
// A call is a state machine: idle, evaluating_policy, awaiting_permission (if
// policy asks), executing, completed. state.go holds the transitions; each is
// shown as an event of the session, which is not stored. A call that is refused
// on the way goes to completed at once. Whatever fails, is cancelled or crashes,
// also in the tool, in the log or in who asks, a call is completed and returns.
//
// What was decided, who answered and that the call is about to run are durable
// before it runs; its result is recorded whatever became of it. An answer counts
// for the very question that was put, for [policy.AnswerExpires]; a no holds for
// the turn.
package dispatch
