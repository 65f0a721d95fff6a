// Package walk looks at what lies below the mounts of a command, before it and
// after it. So far it does on Linux only.
//
// [Scan] walks names before the command starts, and finds those on the list of
// host/policy/paths: what looks like a secret and is masked, and what is mounted
// read-only. That is called closed here: what is closed for every tool, and what
// other tools change after a question, which a command that runs cannot put. [Snapshot.Changes] walks again and says what was created,
// changed and removed. [Snapshot.Restore] takes back what is closed and new, and at a
// tier that cannot mount also what was changed, which [Snapshot.SaveContent] has read before.
//
// No file is opened by Look and Changes, no link is followed, and what is masked
// is not looked into. Other file systems that are mounted below are walked, unless
// they are of the kernel, such as that of /proc. Names, time, the length of a path
// and all lists are bounded; what was not looked at for that reason, or because it
// must not be read, is said.
//
// Directories are opened below the handle of the mount, without links, each for as
// long as it is listed. What the user's other programs do meanwhile can be missed
// or seen half.
package walk
