// Package policyfile reads policy.toml: what an administrator, a user or a
// project permits at most, as one [policy.Layer] of the ceiling.
//
// The administrator's file is [Administrator]: at a fixed place that nothing in
// the environment, on the command line or in a project can change, owned by root,
// writable by nobody else, with every directory above it the same, and checked
// on the descriptors that are read from. Where it is not there, there is no
// such ceiling. Where it is there and anything is wrong with it, that is an
// error, with which nothing may run.
//
//	admin, err := policyfile.Administrator().Read(policy.SourceAdmin)
//	user, err := policyfile.Own(path).Read(policy.SourceUser)      // fs.ErrNotExist: go on without
//
// What that file names and is trusted like it (certificate authorities) is read
// from a [Place.WithPath] with the same demands.
//
// Every file is read strictly: what is unknown, doubtful or empty is an error.
// Only the user's may hold rules that allow, which answer questions within the
// ceiling.
//
// On Linux the checks are tested. Those of macOS (also for access control
// lists) and of Windows (owner and access control list) are compiled and have
// not been run.
package policyfile
