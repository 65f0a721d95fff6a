// Package transcript shows the events of a session: a caller passes events in, and gets
// rows for a terminal and pieces of the model's answer back.
//
// A call is one row: its number in the session, the tool, its main arguments and, at the right
// end, its outcome. Rows below it with text of others (models, tools and files) stand behind a
// bar; rows with our text do not. Calls may run at the same time; they are shown in their
// order, each with its result. Running calls are rows of a live region, which is drawn again
// and again. Without a live region, a long command with output is shown before it ends. The
// card of a call shows everything about it.
//
// The package prints nothing itself. Each row that it returns is harmless and fits the
// terminal. The model's answer is returned as the model wrote it: the caller makes it harmless
// before printing.
package transcript
