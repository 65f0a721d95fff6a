package policyfile

import "os"

func administrator() Place {
	return Place{Path: "/etc/stockade/policy.toml", Root: "/", Owner: rootUID}
}

// checkACL: what an access control list lets others write shows in the mode,
// as its mask in the place of the group's.
func checkACL(*os.File, string) error { return nil }
