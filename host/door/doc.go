// Package door opens everything that makes calls: options go in; tools, calls and turns come
// out. The program is one of its users, a server that offers the tools to others is another,
// and any Go program can be one.
//
// A [Door] holds the things that the sessions of a process share: the sandbox with its
// compiled modules, the log, the way to the network, the secrets. [New] opens nothing yet.
// [Door.Open] opens a [Session]: a new one, or an earlier one that goes on. [Session.Call]
// carries out one call, and [Session.Run] one turn of a model.
//
// Access that no option gives is closed. The zero value of each option is its default: the
// built-in tools, which see no directory, reach no host and know no secret; no person to ask,
// so that a call that needs an answer is denied; a log that is deleted when the door is
// closed. The options of the packages behind it (policy, sandbox, agent) are described there.
// A layer, see [policy.Layer], holds limits for all sessions, such as the administrator's.
//
// The package reads no configuration file, and no environment variable except TZ and TMPDIR.
// The model is told its workspace, its tools and limits, the date, and the text of AGENTS.md
// or else CLAUDE.md in the workspace, which is data and decides nothing.
package door
