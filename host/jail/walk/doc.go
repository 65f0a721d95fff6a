// Package walk examines the files below the mounts of a command, before and after it. So far
// it works on Linux only.
//
// [Scan] walks names before the command starts, and finds those on the list of
// host/policy/paths: files that look like secrets, for the jail to mask, and closed files, for
// it to mount read-only. Closed are files that no tool may change, and files that other tools
// change after a question, which a running command cannot ask. [Snapshot.Changes] walks again
// and returns the created, changed and removed files. [Snapshot.Restore] removes new closed
// files and restores changed closed links. At a tier that cannot mount it also restores changed
// closed files, whose content [Snapshot.SaveContent] has saved before.
//
// Scan and Changes open no files, follow no links, and skip masked directories. They walk
// other file systems that are mounted below, except for those of the kernel, such as /proc.
// Names, time, the length of a path and all lists are limited. It is reported if not all was
// read; directories that were not read are listed, unless time or names ran out.
//
// Directories are opened below the handle of the mount, without links, and only while they
// are listed. Simultaneous changes by the user's other programs can be missed or seen half.
package walk
