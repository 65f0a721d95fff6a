// Package policy decides what a tool call may do. Only this package makes a [Grant], and
// nothing runs without a grant.
//
// [Policy.Decide] is pure: from the tool, the arguments and the rules it makes a [Decision]:
// allow, ask or deny. The [Risk] of a tool follows from what the tool can reach, never from
// its own description. A built-in tool that only reads mounted directories is safe, because
// the mount is the permission. A third-party tool that reads files, and any tool that writes
// files or uses a secret, is medium. A tool that starts a process or reaches the network is
// high.
//
// A tool that a person has added reaches only what that person gave it ([tool.Allowance]), as
// far as all layers permit it. It does not get the mounts and hosts that are open to other
// tools.
//
// Rules come in layers: administrator, user, project, environment, flags; the settings are a
// layer without rules. The [Ceiling] is what all layers together permit. [Narrow] combines
// ceilings, and no layer widens another. A
// rule that allows is an answer to a question: it counts only as far as the ceiling permits. A
// rule names a tool, conditions on its arguments, risks and callers. Deny wins over ask, and
// ask wins over allow. If the text of a call does not show whether a rule applies, a rule that
// allows does not count, and a rule that denies asks. Rules see names, not files.
//
// Some calls fail whatever a person answers, and are denied without a question: a call for a
// file that is in no mount, for a closed path, or for a host that cannot be reached. If a
// built-in web tool needs a host that no rule opens, and a person can be asked, the call asks
// for that host.
//
// A dangerous command asks even if a rule allows it, unless a flag of this run allows exactly
// this command. This helps people; it is no protection.
//
// A remembered answer is bound to the tool as it was ([Binding]). An answer for a session also
// wins over the person's own rules that ask. Rules of other layers that ask do so each time.
//
// The words here: a guest is the WebAssembly code of a tool, in the sandbox. A mount is a
// directory of the host that guests see; a masked path is hidden even inside a mount. A stage
// holds the changes of a call until they are allowed, and a rehearsal is a run on a stage
// before the answer. A special path needs care whatever a tool is allowed (see package paths).
// A history is everything that the commits of a git repository hold. The [Tier] of a process
// is the degree to which the jail confines it.
//
// Five packages below this one know nothing of decisions: command reads command lines,
// gitconfig reads configurations of git, match compares arguments with conditions, network
// decides about hosts, and paths lists the paths that need care.
//
// A Grant comes from a Decision that allows, or from a Decision that asks and an approval that
// has been recorded. It is for one call: this module, these arguments, these mounts, these
// limits, this command, this network. The sandbox and the jail refuse to run anything without
// one.
package policy
