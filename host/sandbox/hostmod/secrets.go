package hostmod

// secretsPlaceholder is secrets.placeholder. Nothing grants a secret yet.
func secretsPlaceholder(g *guest) error {
	return secretsResult.fail(g, g.u32(2), secretsDenied, g.denied(false, "the secret"))
}

// result<string, error>
var secretsResult = layout{size: 16, align: 4, payload: 4, errorText: 8}

const secretsDenied = 0 // a case of error
