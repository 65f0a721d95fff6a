//go:build cgo && unix

package main

/*
#include <errno.h>
#include <fcntl.h>

static int closed;

// This runs before Go's runtime, which opens /dev/null in the place of a closed descriptor.
// After that nobody can tell it from a /dev/null that a person wanted.
__attribute__((constructor)) static void look(void) {
	closed = fcntl(1, F_GETFD) == -1 && errno == EBADF;
}

static int output_closed(void) { return closed; }
*/
import "C"

// stdoutClosed reports whether the program was started without standard output.
func stdoutClosed() bool { return C.output_closed() != 0 }
