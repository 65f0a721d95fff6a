// Package credential finds the login of a registry where Docker and podman keep it: in
// their files below the home directory of the account, which the caller names, and with
// the credential helpers that Docker's file names. Of a file that a variable names,
// only the logins count: see RATIONALE, "Why does a file of logins that a variable names
// count only in part?" A file that others may write to is refused.
//
// A helper is started by its fixed path, from the directories where packages
// install them, and never through PATH. It gets the few variables that a keyring
// needs, 10 seconds, and the name of the registry. This is the only package beside
// the jail that starts processes.
package credential
