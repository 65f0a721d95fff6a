// Package selftest attacks the sandbox of this program on the machine on which
// it runs, and says what stopped each attack.
//
// An [Attack] runs hostile guests through a [Target] and looks at two things:
// what the guest says it has seen (an error number, a trap), and what has
// become of the host. It passes only if the guest has tried and nothing has
// happened; what could not be tried fails. The target of the program is
// [NewSandbox]: the real sandbox, behind the real dispatcher and policy.
//
// # Kinds
//
// An attack is tried with modules of each kind that it says anything about: native
// ones, WASI commands, Extism plugins. What differs between plugins that list their
// tools is how their answers are read, and some functions; those have attacks of their
// own. What is not a matter of the kind is tried with native modules only: how bytes are
// admitted and compiled, as the limits on them come before anybody looks at the kind,
// and what only they can import, which is not admitted in any other. A command is heard
// when it has ended, so that attacks which wait for what a guest says are not for it.
//
// # Words
//
// The machine is a guest that carries out a script: a list of calls of WASI
// and of the host's own functions, which comes with the arguments of the call.
// It answers with a report: what each call returned, and what was read. So most
// attacks are data, and are compiled once for each kind. See package machine.
//
// A scratch directory belongs to one attack. Its ws is what is mounted, out is
// what no guest may see, with the canary in it: random text that must not turn
// up in anything a guest says, in a file that must stay as it is.
//
// An attack on files says what each call is to return where ws is mounted with
// write, read-only, and not at all. Selftest carries it out on one of these, and
// takes any refusal for one; the tests do on all, and want the numbers.
//
// The attacks of the area jail are those of package probe: a command of this program
// that runs as one of bash does. All are one run of it, which the target keeps.
//
// # Harm
//
// No attack needs the sandbox to hold. Loops end by themselves after seconds,
// files that grow are sparse where the system has that, of the memory that is
// asked for at most 64 MiB are written to, what is created lies in the scratch
// directory, and what goes on for longer than its patience is stopped.
//
// # Adding one
//
// Add it to the list of its area, to the counter-proofs in the tests (a target
// that lets it through, which the attack has to find out), and if it is one on
// files, to the cases there. See RATIONALE, "Why does the program attack itself?"
package selftest
