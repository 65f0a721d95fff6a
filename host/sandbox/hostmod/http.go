package hostmod

// httpFetch is http.fetch. Nothing grants the network yet, so it refuses
// without looking at the request.
//
// result<response, error>: discriminant; payload at 8, since the error
// variant holds a u64. error: discriminant at 8, its payload at 16. The
// response is the larger: status, url, headers, body, truncated in 32 bytes.
func httpFetch(g *guest) error {
	const size, payload, text, denied = 40, 8, 16, 0
	return newRecord(size).fail(g, g.u32(13), payload, text, denied, g.denied(false, "the network"))
}
