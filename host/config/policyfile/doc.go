// Package policyfile reads policy.toml: the limits that an administrator, a user or a
// project sets, as one [policy.Layer] of the ceiling.
//
// The administrator's file is [Administrator]: at a fixed place that nothing in the
// environment, on the command line or in a project can change. The file and every directory
// above it must be owned by root and writable by nobody else, which is checked on the
// descriptors that are read from. If the file does not exist, there is no such ceiling.
// Anything wrong with it is an error, and then nothing may run.
//
//	admin, err := policyfile.Administrator().Read(policy.SourceAdmin)
//	user, err := policyfile.User(path).Read(policy.SourceUser)      // fs.ErrNotExist: go on without
//
// Files that the administrator's file names, such as certificate authorities, are read from a
// [Place.WithPath], which makes the same demands.
//
// Unknown, ambiguous or empty entries of a file are errors. Only the user's file may hold
// rules that allow; they answer questions within the ceiling.
//
// On Linux the checks are tested. Those of macOS (also for access control lists) and of
// Windows (owner and access control list) are compiled and have not been run.
package policyfile
