package preview1

import "github.com/stockade-dev/stockade/host/sandbox/wasi"

// The names of the modules from which guests import the functions.
const (
	ModuleName   = "wasi_snapshot_preview1"
	UnstableName = "wasi_unstable" // module before preview 1, for which modules were built until 2020
)

// edition holds the differences between the two modules. Functions, errors, rights, and every
// other record are equal.
type edition struct {
	whence            [3]wasi.Whence // meaning of the numbers 0 to 2 of fd_seek's whence
	filestatBytes     uint64         // less in wasi_unstable: the number of links has 32 bits, no padding
	subscriptionBytes uint64         // more in wasi_unstable: a clock's begins with an unused identifier
}

var editions = map[string]*edition{
	ModuleName:   {[3]wasi.Whence{wasi.FromStart, wasi.FromCurrent, wasi.FromEnd}, 64, 48},
	UnstableName: {[3]wasi.Whence{wasi.FromCurrent, wasi.FromEnd, wasi.FromStart}, 56, 56},
}

// Offers reports whether module is a name that [Instantiate] accepts.
func Offers(module string) bool { return editions[module] != nil }
