// Package selftest attacks the sandbox of this program on the machine on which it runs,
// and reports what stopped each attack.
//
// An [Attack] runs hostile guests through a [Target] and checks two things: the results
// that the guest reports (an error number, a trap), and the state of the host. It passes
// only if the guest has tried and nothing has happened; an attack that could not be tried
// fails. The target of the program is [NewSandbox]: the real sandbox, behind the real
// dispatcher and policy.
//
// # Kinds
//
// An attack is tried with modules of each kind for which it means anything: native ones,
// WASI commands, Extism plugins. Plugins that list their tools differ from others in the
// form of their answers, and in some functions; those have attacks of their own. Attacks
// that do not depend on the kind are tried with native modules only: on the admission and
// compilation of bytes, as those limits apply before the kind is known, and on imports
// that only native modules can have. The output of a command is only seen when it has
// ended, so attacks that wait for a message of the guest are not tried with commands.
//
// # Words
//
// The machine is a guest that executes a script: a list of calls of WASI and of the
// host's own functions, passed in the arguments of the call. It answers with a report:
// the result of each call, and the data that was read. So most attacks are data, and the
// machine is compiled once for each kind. See package machine.
//
// A scratch directory belongs to one attack. Its directory ws is mounted; out must stay
// hidden from every guest. A file in out holds the canary: random text that must not turn
// up in any output of a guest. That file must not change.
//
// An attack on files names the result of each call for three kinds of mount: ws mounted
// with write, read-only, and not at all. Selftest runs it on one of these, and accepts
// any refusal; the tests run it on all, and check the error numbers.
//
// The attacks of the area jail are those of package probe: a command of this program runs
// like a command of bash. All of them are results of a single run, which the target
// stores.
//
// # Harm
//
// No attack relies on the sandbox to be harmless. Loops end by themselves after seconds;
// files that grow are sparse where the system supports it; at most 64 MiB of the
// requested memory are written to; all files are made in the scratch directory; and an
// attack that exceeds its patience is stopped.
//
// # Adding one
//
// Add it to the list of its area, to the counter-proofs in the tests (a target that lets
// the attack through, which the attack has to detect), and, if it is an attack on files,
// to the cases there. See RATIONALE, "Why does the program attack itself?"
package selftest
