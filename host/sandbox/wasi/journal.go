package wasi

import "io"

// Journal is told about everything that reaches a guest from outside and
// everything that it changes there. It is the one place on which undo and
// replay build. Nil, wherever a Journal is an option, tells nobody.
//
// Read, Clock and Random are called on the goroutine of the guest, BeforeWrite
// by [Stage.Commit]; an implementation that is used for several calls at once
// must allow for that. Names are absolute names of the guest, see [FS].
type Journal interface {
	// BeforeWrite is called for each name that a commit is about to change,
	// when everything is checked and prepared and nothing is done. before is
	// the content that is there now, and is valid during the call only; it is
	// nil if there is none, because nothing, a directory or something else is
	// there. An error ends the commit, which has then changed nothing.
	BeforeWrite(path string, before io.Reader) error
	// Read is called when a guest opens a file in order to read it. An error
	// fails that with EIO.
	Read(path string) error
	// Clock is called with what a guest is about to be told by a clock, in
	// nanoseconds, and says what it is told. Of the two clocks, realtime is
	// that of the day.
	Clock(realtime bool, now uint64) uint64
	// Random is called with the random bytes that a guest is about to get, and
	// may put others in their place.
	Random(p []byte)
}
