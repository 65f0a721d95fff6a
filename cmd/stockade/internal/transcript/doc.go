// Package transcript shows what was done: the events of a session go in, rows
// for a terminal and pieces of the answer come out.
//
// A call is one row: its number in the session, the tool, its main arguments, and
// at the right what came of it. What hangs below it stands behind a bar if others
// have written it. Calls run at the same time and are shown in their order, each
// with its result; those that run are the rows of a live region, or are begun
// where there is none. All of a call is on its card.
//
// It prints nothing itself. Each row that it returns is harmless and fits the
// terminal. A piece of the answer is as the model has written it: who prints it
// makes it harmless.
package transcript
