package policyfile

import "os"

func administrator() Place {
	return Place{Path: "/etc/stockade/policy.toml", Root: "/", Owner: root}
}

// checkList: what an access control list lets others write shows in the mode,
// as its mask in the place of the group's.
func checkList(*os.File, string) error { return nil }
