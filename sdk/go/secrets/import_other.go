//go:build !wasip1

package secrets

// hostPlaceholder is the host's function. Natively there is no host; tests of this package
// set their own.
var hostPlaceholder = func(namePtr, nameLen, ret uint32) {
	panic("secrets: no host: the program does not run as a Stockade module")
}
