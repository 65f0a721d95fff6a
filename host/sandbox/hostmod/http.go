package hostmod

// httpFetch is http.fetch. Nothing grants the network yet, so it refuses
// without looking at the request.
func httpFetch(g *guest) error {
	return httpResult.fail(g, g.u32(13), httpDenied, g.denied(false, "the network"))
}

// result<response, error>; the u64 in error makes the alignment 8.
var httpResult = layout{size: 40, align: 8, payload: 8, errorText: 16}

const httpDenied = 0 // a case of error
