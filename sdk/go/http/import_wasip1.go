package http

//go:wasmimport stockade:tool/http@0.1.0 fetch
func hostFetch(methodPtr, methodLen, urlPtr, urlLen, headersPtr, headersLen,
	hasBody, bodyPtr, bodyLen, hasTimeout, timeoutMillis, hasMax, maxBytes, ret uint32)
