// Package policy decides what a call may do, and is the only code that can
// say so to the rest: a [Grant] comes from here or from nowhere.
//
// [Policy.Decide] is pure: it looks at the tool, the arguments and the rules
// and answers with a [Decision]: allow, ask or deny. Risk follows from what
// the tool can reach, never from what it says about itself: a tool that only
// reads mounted directories is safe, because the mount is the grant, if it is
// built in; one that others wrote and that reads, or that writes or uses a secret,
// is medium; one that starts a process or reaches the network is high.
//
// A tool that a person has added sees and reaches what it was given
// ([tool.Allowance]), as far as all layers permit it, and nothing of what is open to
// others.
//
// Rules come in layers: administrator, user, project, environment, flags. What
// all of them permit together is the [Ceiling]; layers meet in [Narrow] and none
// widens another. A rule that allows is an answer: it counts only for a question
// that the ceiling leaves. A rule speaks of a tool, of conditions on its
// arguments, of risk and of the caller. Deny wins over ask, and ask
// over allow; what cannot be told from the words of a call never allows, and
// asks where a rule denies. Rules see names, not files.
//
// What no answer opens is denied before anybody is asked: a file that no mount
// shows, a closed path, a host that cannot be reached. A host that no rule opens is
// asked about where a built-in tool of the web would reach it and somebody is there.
//
// A command that is easily regretted asks even where a rule allows it, unless a
// flag of this run holds it to the letter; that is a courtesy.
//
// A remembered answer is bound to what it was given for ([Binding]). One that is given
// for a session wins over the person's own rules that asked, too; what any other layer
// asks is asked each time.
//
// What a decision looks at is in packages of its own, which know nothing of
// decisions: command reads command lines, match compares arguments with
// conditions, network says who may be reached, and paths which paths need care.
//
// A Grant comes from a Decision that allows, or from one that asks and an
// approval that has been recorded. It names one call: this module, these
// arguments, these mounts, these limits, this command, this network. The sandbox
// and the jail refuse to run without one.
package policy
