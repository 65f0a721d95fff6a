// Package prompt asks a person whether calls may run.
//
// A question comes from policy. A [Prompt] is what of it is shown in a few rows, what
// stands behind "?", and which keys answer it: whatever is not ours stands behind a bar,
// made visible. An [Asker] puts prompts to the person; [Terminal] does it on lines that
// are typed, and a screen that takes single keys can. A [Queue] sees to it that there is
// one prompt at a time, in the order in which calls arrive, and makes a batch of those
// that wait together; it is the dispatch.Approver. See RATIONALE, "Why does a question
// hold back everything else, and repeat itself?" and "Why is so little of a question shown at first?"
package prompt
