// Package credential finds the login of a registry where Docker keeps it: in
// ~/.docker/config.json and with the credential helpers that it names.
//
// The home directory is the caller's to name. No environment variable says where
// the configuration is: a repository can set those of whoever enters it. A file
// that others may write to is refused, since it names programs that are started.
//
// A helper is started by its fixed path, from the directories where packages
// install them, and never through PATH. It gets the few variables that a keyring
// needs, 10 seconds, and the name of the registry. This is the only package beside
// the jail that starts processes.
package credential
