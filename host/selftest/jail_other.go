//go:build !linux

package selftest

func jailAttacks() []Attack    { return nil }
func stagingAttacks() []Attack { return nil }

type probes struct{}
