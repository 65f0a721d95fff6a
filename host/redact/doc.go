// Package redact takes secrets out of everything that leaves the process: output, logs,
// events, errors, and the answers of servers to guests.
//
// A [Redactor] gets every secret value that this process reads. It finds these values and
// their usual encodings, and nothing else. It does not find a piece of a value, so a text must
// be redacted before it is cut: with [Redactor.Head], or with [Redactor.Stream] in front of
// the code that keeps a part of a stream. It misses a value that a guest splits between two of
// its log or progress messages, a beginning with which the output of a killed process ends,
// and a rest in a shortened name or argument that an error quotes.
//
// It catches mistakes, such as a server that echoes a header. It does not stop anybody
// who has a value and wants to pass it on.
package redact
