//go:build !unix

package selftest

// cacheCases has no case: owners and permissions of files are not checked on this system.
func cacheCases() []testCase {
	return []testCase{{
		id: "R27", title: "compiled code that was changed on disk", attacks: "compiled-code-changed",
		open: "the folder of the user is private by the rules of this system, and its ACL is not looked at",
	}}
}
