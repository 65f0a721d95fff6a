//go:build !linux

package linear

// Methods yields the ways to reset that work here.
func Methods() []Method { return []Method{MethodCopy} }
