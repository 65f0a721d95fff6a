// Package dispatch is the only way to every tool, for the agent and for `stockade call` alike.
// [Dispatcher.Call] carries out one call, and [Dispatcher.CallAll] the calls of one reply,
// side by side where they only read. The path of a call is in call.go, which reads from top to
// bottom as the security story. [Dispatcher.Resume] counts what a resumed session has used
// before. [Dispatcher.Definitions] offers many tools as groups, see groups.go.
// [Dispatcher.Undo] puts back what a turn has changed, as a call of a person.
//
// A call is a state machine: idle, evaluating_policy, awaiting_permission (if the policy
// asks), executing, completed. state.go holds the transitions. Each transition is shown
// as an event of the session, which is not stored. A refused call goes to completed at
// once. A call is completed and returns even if something fails, is cancelled or crashes:
// the tool, the log or the approver.
//
// Three things are durable before a call has an effect: the intent to run, the decision, and
// the answer with its giver. A rehearsed call runs before the last two, without an effect. The
// result is recorded in every case. An answer counts only for the question that was put, for
// [policy.AnswerExpires]. A no holds for equal calls of the turn.
package dispatch
