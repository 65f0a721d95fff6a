//go:build unix && !linux && !darwin

package policyfile

import "os"

func administrator() Place {
	return Place{Path: "/etc/stockade/policy.toml", Root: "/", Owner: root}
}

func checkList(*os.File, string) error { return nil }
