package preview1

import "github.com/stockade-dev/stockade/host/sandbox/wasi"

// The names of the modules from which guests import the functions.
const (
	ModuleName = "wasi_snapshot_preview1"
	// UnstableName is the module of the snapshot before preview 1. Modules were built for
	// it until 2020.
	UnstableName = "wasi_unstable"
)

// edition holds the differences between the two modules. Everything else is the same:
// functions, errors, rights, and every other record.
type edition struct {
	whence            [3]wasi.Whence // meaning of each number
	filestatBytes     uint64         // in wasi_unstable the number of links has 32 bits, and four bytes of padding are missing
	subscriptionBytes uint64         // in wasi_unstable a clock's subscription begins with eight more bytes, an unused identifier
}

var editions = map[string]*edition{
	ModuleName:   {[3]wasi.Whence{wasi.FromStart, wasi.FromCurrent, wasi.FromEnd}, 64, 48},
	UnstableName: {[3]wasi.Whence{wasi.FromCurrent, wasi.FromEnd, wasi.FromStart}, 56, 56},
}

// Offers reports whether module is a name that [Instantiate] accepts.
func Offers(module string) bool { return editions[module] != nil }
