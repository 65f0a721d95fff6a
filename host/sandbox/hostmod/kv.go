package hostmod

// Nothing grants a store yet: every function refuses.
//
// The error variant holds a u64, so in each result the error's discriminant
// is at 8 and its payload at 16; the results are 24 bytes long.
func kvDenied(g *guest, ptr uint32) error {
	const size, payload, text, denied = 24, 8, 16, 0
	return newRecord(size).fail(g, ptr, payload, text, denied, g.denied(false, "the key-value store"))
}

func kvGet(g *guest) error    { return kvDenied(g, g.u32(2)) }
func kvSet(g *guest) error    { return kvDenied(g, g.u32(6)) }
func kvDelete(g *guest) error { return kvDenied(g, g.u32(2)) }
func kvKeys(g *guest) error   { return kvDenied(g, g.u32(3)) }
