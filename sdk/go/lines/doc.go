// Package lines finds the lines of files that match an RE2 expression, fast
// and in bounded memory. The host searches with it for its guests, and a guest
// that does without the host searches with it itself.
//
// A line ends with \n or \r\n, which are not part of it, or with the file. Of a
// line no more than MaxLine bytes are matched. A file with a NUL among its
// first BinaryProbe bytes is binary, and has no lines; one of UTF-16 is an error.
//
// # How it is fast
//
// Matching an expression costs some tens of nanoseconds a byte, looking for a
// text a fraction of one. So what every match must contain is taken from the
// expression, as one or a few texts, and only lines that contain one of them
// are matched. An expression that has nothing of the kind is matched against
// every line.
package lines
