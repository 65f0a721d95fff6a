package preview1

import "github.com/stockade-dev/stockade/host/sandbox/wasi"

// The names under which guests import the functions.
const (
	ModuleName = "wasi_snapshot_preview1"
	// UnstableName is that of the snapshot before preview 1, for which modules were
	// built until 2020.
	UnstableName = "wasi_unstable"
)

// edition is what the modules differ in. All else of the one is as in the other:
// functions, errors, rights, and every other record.
type edition struct {
	whence            [3]wasi.Whence // what the numbers mean
	filestatBytes     uint64         // the number of links has 32 bits where eight are missing, of which four were padding
	subscriptionBytes uint64         // a clock's begins with an identifier, which means nothing, where there are eight more
}

var editions = map[string]*edition{
	ModuleName:   {[3]wasi.Whence{wasi.FromStart, wasi.FromCurrent, wasi.FromEnd}, 64, 48},
	UnstableName: {[3]wasi.Whence{wasi.FromCurrent, wasi.FromEnd, wasi.FromStart}, 56, 56},
}

// Offers reports whether a module is one that [Instantiate] can give to a runtime.
func Offers(module string) bool { return editions[module] != nil }
