//go:build !unix

package selftest

// specialFileAttacks need files that this system does not have.
func specialFileAttacks() []fileAttack { return nil }
