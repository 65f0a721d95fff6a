package policyfile

import "os"

func administrator() Place {
	return Place{Path: "/etc/stockade/policy.toml", Root: "/", Owner: rootUID}
}

// checkACL accepts every file: the mode shows what an access control list lets others
// write, as the list's mask stands in the place of the group's permissions.
func checkACL(*os.File, string) error { return nil }
