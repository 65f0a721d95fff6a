package policyfile

import "os"

func administrator() Place {
	return Place{Path: "/etc/stockade/policy.toml", Root: "/", Owner: rootUID}
}

// checkACL accepts every file: the mode already shows the permissions that an access control
// list gives to others, because the list's mask replaces the group's permissions.
func checkACL(*os.File, string) error { return nil }
