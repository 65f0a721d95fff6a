// Package lines finds the lines of files that match an RE2 expression, fast and in bounded
// memory. The host uses it to search for its guests, and a guest can use it without the host.
//
// A line ends with \n, \r\n or the end of the file; the ending is not part of the line.
// At most MaxLine bytes of a line are matched. A file with a NUL byte among its first
// BinaryProbe bytes is binary, and has no lines; a file in UTF-16 is an error.
//
// # How it is fast
//
// Matching an expression takes some tens of nanoseconds a byte, finding a text a fraction
// of one. Therefore one or a few texts are derived from the expression, one of which every
// match must contain. Only lines with such a text are matched. If there are no such
// texts, every line is matched.
package lines
