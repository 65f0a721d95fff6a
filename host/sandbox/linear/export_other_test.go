//go:build !linux

package linear

// Methods are the ways to reset that work here.
func Methods() []Method { return []Method{MethodCopy} }
