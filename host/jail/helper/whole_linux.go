//go:build !mutants

package main

// without says which layers of the wall are left out: none. With the tag mutants
// it is for the tests of the jail.
func without(string) bool { return false }
