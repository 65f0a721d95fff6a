// Package redact takes secrets out of what leaves the process: output, logs,
// events, errors, and what servers answer to guests.
//
// A [Redactor] is told of every value that was read in this process, and finds
// it and its usual encodings. It finds what it knows in the forms that it knows.
// A piece of a value is not known, so whoever shortens a text redacts it first:
// with [Redactor.Head], or with [Redactor.Stream] in front of what keeps a part
// of a stream. A value that a guest divides between two messages of its own (of
// its log, of its progress) is not found; neither is the beginning of one with
// which a process ends that is killed, nor what is left of one in the few
// characters of a name or an argument that an error quotes.
//
// It is a net under mistakes, such as a server that echoes a header; it does
// not stop somebody who has a value and means to get it out.
package redact
