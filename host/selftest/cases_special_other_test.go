//go:build !unix

package selftest

// specialCases need files that this system does not have.
func specialCases() []numbered {
	nothing := func(x *onMount) { x.want(x.stat(x.in("else/inside"), 0), "see a file", "ok") }
	const why = "this system has no such files"
	return []numbered{
		{id: "F27", title: "named pipe", files: nothing, open: why},
		{id: "F28", title: "socket and devices", files: nothing, open: why},
		{id: "F29", title: "files without an end, by a mount that holds them", files: nothing, open: why},
	}
}
