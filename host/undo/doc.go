// Package undo puts the files back that the last turn of a session has changed.
//
// What was changed is read from the log, whose chain is verified: from the event
// call.changes of each call, with what it was before and after, by hash. The way
// back from a turn is from what it has left to what was there before its first
// change; where calls of it do not follow each other, because somebody else has
// changed a file in between, there is none. The contents come from the images of the
// store, see [session.Store].
//
// It is all or none. Each file must still be as the turn has left it, or the
// differences are shown; each must have an image, or it is said why there is none.
// A command that changed files directly leaves no record, so a turn with one is not
// undone. Times, owners and the bits setuid and setgid are not put back.
//
// Nothing here writes to the host: the way back is staged, in the directories that
// the grant of the call lets it change, by names that are looked up part by part and
// through no link. From there it goes the way of every call's changes: the policy
// decides about the paths, the log gets them with images of what is replaced, and the
// stage commits them.
package undo
