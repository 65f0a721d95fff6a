//go:build !unix

package selftest

// specialFileAttacks returns nil: this system does not have the files.
func specialFileAttacks() []fileAttack { return nil }
