// Package credential finds the login of a registry in the files of Docker and podman, below
// the home directory of the account, which the caller names, and with the credential
// helpers that Docker's file names. If an environment variable names the file, only the
// logins in it count: see RATIONALE, "Why does a file of logins that a variable names count
// only in part?" A file that others may write to is refused.
//
// A helper is started by its fixed path, from the directories where packages install
// helpers, and never through PATH. It gets the few variables that a keyring needs, 10
// seconds, and the name of the registry. Below host, only this package, the jail and the
// toolchain of authors start processes.
package credential
