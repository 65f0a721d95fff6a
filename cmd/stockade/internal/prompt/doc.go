// Package prompt asks a person whether calls may run.
//
// A question comes from package policy. A [Prompt] is the form in which a person sees it: a
// few rows, more rows behind the key "?", and the keys that answer it. Our text, in rows of
// ours, is text of this program. Text of others (models, tools and files) stands behind a bar
// and is made visible. An [Asker] shows prompts to the person: [Terminal] does it with typed
// lines, and a screen can do it with single keys. A [Queue] shows one prompt at a time, in the
// order in which calls arrive, and combines waiting calls in a batch; it is the
// dispatch.Approver. See RATIONALE, "Why does a question hold back everything else, and repeat
// itself?" and "Why is so little of a question shown at first?"
package prompt
