// Package undo puts the files back that the last turn of a session has changed.
//
// The changes are read from the log, whose chain is verified: the event call.changes of each
// call has every version before and after, by hash. Undoing a turn leads from the versions
// after its last change to the versions before its first one. If somebody else has changed a
// file between two calls of the turn, so that its changes do not follow each other, the turn
// cannot be undone. The contents come from the preimages of the store, see [session.Store].
//
// A turn is undone as a whole or not at all. If a file has changed since the turn, nothing is
// undone, and the differences are shown. If a content is not stored, nothing is undone, and
// the reason is given. A command that changed files directly leaves no record, so a turn with
// one is not undone. Times, owners and the bits setuid and setgid are not put back.
//
// The package does not write to the host. It stages the changes in the directories that the
// grant of the call lets it change, and looks up each path part by part, following no link.
// Then they are treated like the changes of every call: the policy decides about the paths,
// the log gets them with preimages (the contents before), and the stage commits them.
package undo
