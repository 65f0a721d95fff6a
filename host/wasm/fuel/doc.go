// Package fuel puts code into a module that counts the instructions it executes.
//
// # What is counted
//
// Each executed instruction has a cost, see [Cost]: most have 1, instructions that only structure
// the code have 0, and slow ones more. Instructions that work on any number of bytes, elements or
// pages cost by that number too; added functions do the large ones in pieces. The sum is the same
// in every run of the same module on the same input. When a function has returned, the cost of
// its executed instructions has been counted exactly. When it trapped, the rest of its basic block
// and at most 4096 units ahead have been counted as well, for each function that was running; the
// count is never less than what was executed.
//
// # How
//
// The counter is a global that the module cannot name. It counts down. A basic block subtracts
// the cost of its instructions at its start (a charge), but not every block has to: see tree.go.
// Inside a function the counter is computed in a local, and written to the global before every
// instruction that may trap or leave the function; see emit.go.
//
// At the start of most loops and functions, or right before a call, the code checks whether the
// counter is below zero, and if so calls the imported function refill. There a host can stop a
// module, or let it go on with more fuel. Small functions without calls have no check at their
// start. A function that checks before its first call or loop instead of at its start checks
// late. Long stretches of code in between, and those after calls, have checks too; see the
// constants in flow.go.
//
// The depth of calls can be limited with a second counter, the depth, which also counts down and
// is checked together with the first; see [Options].
//
// The placement, the shape of the check and the costs were chosen by measurements against other
// ways; `make bench-fuel` repeats them. See RATIONALE, "Why is fuel counted by code in the
// module, and not by the engine?"
package fuel
