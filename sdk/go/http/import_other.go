//go:build !wasip1

package http

// hostFetch is the host's function. Natively there is no host; tests of this package set
// their own.
var hostFetch = func(methodPtr, methodLen, urlPtr, urlLen, headersPtr, headersLen,
	hasBody, bodyPtr, bodyLen, hasTimeout, timeoutMillis, hasMax, maxBytes, ret uint32) {
	panic("http: no host: the program does not run as a Stockade module")
}
