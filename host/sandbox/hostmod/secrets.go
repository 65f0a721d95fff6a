package hostmod

// secretsPlaceholder is secrets.placeholder. Nothing grants a secret yet.
//
// result<string, error>: discriminant; payload at 4; the error's own payload
// at 8.
func secretsPlaceholder(g *guest) error {
	const size, payload, text, denied = 16, 4, 8, 0
	return newRecord(size).fail(g, g.u32(2), payload, text, denied, g.denied(false, "the secret"))
}
