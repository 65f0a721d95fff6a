// Package prompt asks a person whether calls may run.
//
// A question comes from policy. A [Renderer] turns it into text, and does
// nothing else: whatever is not ours stands behind a bar, made visible. A
// [Terminal] shows that text and reads the answer. A [Queue] sees to it that
// there is one prompt at a time, in the order in which calls arrive, and makes a
// batch of those that wait together; it is the dispatch.Approver. See
// RATIONALE, "Why does a question hold back everything else, and repeat
// itself?"
package prompt
