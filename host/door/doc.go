// Package door opens everything that makes calls: options go in; tools, calls and
// turns come out. The program is one of its users, a server that offers the tools
// to others is another, and any Go program can be one.
//
// A [Door] is what the sessions of a process share: the sandbox with its compiled
// modules, the log, the way to the network, the secrets. [New] opens nothing yet.
// [Door.Open] opens a [Session], a new one or one of the past: in this order the
// tools, the secrets that they ask for, the log, the policy, the lock of the
// session, what it has done before, the model, the dispatcher, the agent and the
// first event.
// [Session.Call] carries out one call, and [Session.Run] one turn of a model.
//
// What is not opened is closed. The zero value of each option is its default:
// the built-in tools, which are shown no directory, reach no host and know no
// secret; nobody who could be asked, so that what asks is denied; a log that goes
// when the door is closed. The options are those of the packages behind it
// (policy, sandbox, agent), where each is described.
//
// Nothing is read here from files of configuration or from the environment. A model
// is told where it works, which tools and limits it has and which day it is, and what
// AGENTS.md of the workspace says: that is data, and decides nothing.
package door
