package hostmod

// Nothing grants a store yet: every function refuses.
func kvRefuse(g *guest, ptr uint32) error {
	return kvResult.fail(g, ptr, kvDenied, g.world.denied(false, "the key-value store"))
}

// The result of every function: the error is larger than what they return, and
// its u64 makes the alignment 8.
var kvResult = layout{size: 24, align: 8, payload: 8, errorText: 16}

const kvDenied = 0 // a case of error

func kvGet(g *guest) error    { return kvRefuse(g, g.u32(2)) }
func kvSet(g *guest) error    { return kvRefuse(g, g.u32(6)) }
func kvDelete(g *guest) error { return kvRefuse(g, g.u32(2)) }
func kvKeys(g *guest) error   { return kvRefuse(g, g.u32(3)) }
