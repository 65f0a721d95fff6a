//go:build darwin || windows

package secret

// keyringReachable: the keyring is a part of the system.
func keyringReachable() error { return nil }
