package foreign

import (
	"flag"
	"os"
	"testing"
)

var (
	all    = flag.Bool("all", false, "also run what npm, PyPI and the Go toolchain bring, which takes minutes and 400 MB the first time")
	update = flag.Bool("update", false, "write TABLE.md again")
	only   = flag.String("only", "", "the `name` of the only module that is run")
)

func TestMain(m *testing.M) {
	RunCompileChild()
	flag.Parse()
	os.Exit(m.Run())
}
