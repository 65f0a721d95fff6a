// Package secret keeps named secrets, and lets a call use one without seeing it.
//
// A [Record] is a value with a name and with what it is for: the hosts and the
// header in which it may be sent. It is kept in the keyring of the operating
// system ([Keyring]) or, where there is none, in an encrypted file ([File]);
// [Vault] is both together, and knows of each name where it is.
//
// A guest gets a placeholder, which means something in its call only. The
// [Table] of the call puts the value in its place, in the approved header of a
// request to the approved host; anywhere else a placeholder is an error. What
// has to hold for the table's caller is said there.
//
// Every value that was read in this process is told to a redactor, which keeps it
// out of what leaves the process: see package redact.
//
// # What this protects against
//
// Guests, models, the session log, terminals and shell histories do not get a
// value. Both stores keep values from other users of the machine. Neither keeps
// them from programs that run as the same user: those may ask the keyring once
// it is unlocked, and may read the file and the key beside it, or this
// process's memory. A passphrase instead of the key file protects the file at
// rest, also from such a program, until the passphrase is typed in. Nobody is
// kept from putting an older copy of the file back.
package secret
