// Package secret keeps named secrets, and lets a call use one without seeing it.
//
// A [Record] is a value with a name and a binding: the hosts to which it may be sent, and the
// header that may carry it. It is kept in the keyring of the operating system ([Keyring]) or, if
// there is none, in an encrypted file ([File]). A [Vault] combines both stores.
//
// A guest gets a placeholder, which is valid only in its call. The [Table] of the call replaces it
// by the value, in the approved header of a request to the approved host. Anywhere else a
// placeholder is an error. Table names the duties of its caller.
//
// Every value that this process reads is added to a redactor, which removes it from everything
// that leaves the process: see package redact.
//
// # What this protects against
//
// Guests, models, the session log, terminals and shell histories do not get a value. Both stores
// keep values from other users of the machine. Neither keeps them from programs of the same
// user: such a program may ask the unlocked keyring, or read the file and the key beside it, or
// this process's memory. A passphrase instead of the key file protects the file at rest from
// such a program, too, until the passphrase is typed in. Nothing prevents that an older copy of
// the file is put back.
package secret
