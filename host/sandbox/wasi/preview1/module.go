package preview1

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// ErrPanic is wrapped by the error of a call in which a function of this package panicked.
// That is a fault of the host and not of the guest.
var ErrPanic = errors.New("WASI function panicked")

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

type function struct {
	name   string
	params []api.ValueType
	run    func(guest) wasi.Errno
}

func params(types ...api.ValueType) []api.ValueType { return types }

// functions lists every function of preview 1, in the order of its witx files.
var functions = []function{
	{"args_get", params(i32, i32), func(g guest) wasi.Errno { return g.writeList(g.w.args) }},
	{"args_sizes_get", params(i32, i32), func(g guest) wasi.Errno { return g.writeListSizes(g.w.args) }},
	{"environ_get", params(i32, i32), func(g guest) wasi.Errno { return g.writeList(g.w.env) }},
	{"environ_sizes_get", params(i32, i32), func(g guest) wasi.Errno { return g.writeListSizes(g.w.env) }},
	{"clock_res_get", params(i32, i32), clockResGet},
	{"clock_time_get", params(i32, i64, i32), clockTimeGet},
	{"fd_advise", params(i32, i64, i64, i32), fdFunc(anyKind, 0, fdAdvise)},
	{"fd_allocate", params(i32, i64, i64), fdFunc(regularOnly, rightFDAllocate, fdAllocate)},
	{"fd_close", params(i32), fdClose},
	{"fd_datasync", params(i32), fdFunc(noStream, rightFDDatasync, fdSync)},
	{"fd_fdstat_get", params(i32, i32), fdFunc(anyKind, 0, fdFdstatGet)},
	{"fd_fdstat_set_flags", params(i32, i32), fdFunc(anyKind, rightFDFdstatSetFlags, fdFdstatSetFlags)},
	{"fd_fdstat_set_rights", params(i32, i64, i64), fdFunc(anyKind, 0, fdFdstatSetRights)},
	{"fd_filestat_get", params(i32, i32), fdFunc(anyKind, rightFDFilestatGet, fdFilestatGet)},
	{"fd_filestat_set_size", params(i32, i64), fdFunc(regularOnly, rightFDFilestatSetSize, fdFilestatSetSize)},
	{"fd_filestat_set_times", params(i32, i64, i64, i32), fdFunc(anyKind, rightFDFilestatSetTimes, fdFilestatSetTimes)},
	{"fd_pread", params(i32, i32, i32, i64, i32), fdFunc(regularOnly, rightFDRead|rightFDSeek, fdPread)},
	{"fd_prestat_get", params(i32, i32), fdPrestatGet},
	{"fd_prestat_dir_name", params(i32, i32, i32), fdPrestatDirName},
	{"fd_pwrite", params(i32, i32, i32, i64, i32), fdFunc(regularOnly, rightFDWrite|rightFDSeek, fdPwrite)},
	{"fd_read", params(i32, i32, i32, i32), fdFunc(fileOrStream, rightFDRead, fdRead)},
	{"fd_readdir", params(i32, i32, i32, i64, i32), fdFunc(directoryOnly, rightFDReaddir, fdReaddir)},
	{"fd_renumber", params(i32, i32), fdRenumber},
	{"fd_seek", params(i32, i64, i32, i32), fdSeek},
	{"fd_sync", params(i32), fdFunc(noStream, rightFDSync, fdSync)},
	{"fd_tell", params(i32, i32), fdTell},
	{"fd_write", params(i32, i32, i32, i32), fdFunc(fileOrStream, rightFDWrite, fdWrite)},
	{"path_create_directory", params(i32, i32, i32), pathFunc(rightPathCreateDirectory, (*wasi.FS).Mkdir)},
	{"path_filestat_get", params(i32, i32, i32, i32, i32), pathFilestatGet},
	{"path_filestat_set_times", params(i32, i32, i32, i32, i64, i64, i32), pathFilestatSetTimes},
	{"path_link", params(i32, i32, i32, i32, i32, i32, i32), pathLink},
	{"path_open", params(i32, i32, i32, i32, i32, i64, i64, i32, i32), pathOpen},
	{"path_readlink", params(i32, i32, i32, i32, i32, i32), pathReadlink},
	{"path_remove_directory", params(i32, i32, i32), pathFunc(rightPathRemoveDirectory, (*wasi.FS).Rmdir)},
	{"path_rename", params(i32, i32, i32, i32, i32, i32), pathRename},
	{"path_symlink", params(i32, i32, i32, i32, i32), pathSymlink},
	{"path_unlink_file", params(i32, i32, i32), pathFunc(rightPathUnlinkFile, (*wasi.FS).Unlink)},
	{"poll_oneoff", params(i32, i32, i32, i32), pollOneoff},
	{"proc_exit", params(i32), procExit},
	{"proc_raise", params(i32), procRaise},
	{"sched_yield", params(), schedYield},
	{"random_get", params(i32, i32), randomGet},
	{"sock_accept", params(i32, i32, i32), sock},
	{"sock_recv", params(i32, i32, i32, i32, i32, i32), sock},
	{"sock_send", params(i32, i32, i32, i32, i32), sock},
	{"sock_shutdown", params(i32, i32), sock},
}

func (f function) results() []api.ValueType {
	if f.name == "proc_exit" {
		return nil
	}
	return []api.ValueType{i32}
}

// Functions returns the types of all functions, by name. The caller may change the map.
func Functions() map[string]abi.Signature {
	out := make(map[string]abi.Signature, len(functions))
	for _, f := range functions {
		out[f.name] = abi.Signature{Params: f.params, Results: f.results()}
	}
	return out
}

// Instantiate gives the runtime the host module with a name, for all its guests; each finds
// its world in the context of the call. missing are the functions that guests import and WASI
// does not have: they return ENOTSUP.
func Instantiate(ctx context.Context, rt wazero.Runtime, name string, missing ...MissingFunction) error {
	e := editions[name]
	if e == nil {
		return fmt.Errorf("host module %q: there is none", name)
	}
	b := rt.NewHostModuleBuilder(name)
	var all []function
	for _, m := range missing {
		all = append(all, m.function())
	}
	for _, f := range functions {
		if !slices.ContainsFunc(missing, func(m MissingFunction) bool { return m.Name == f.name }) {
			all = append(all, f)
		}
	}
	for _, f := range all {
		b.NewFunctionBuilder().
			WithGoModuleFunction(f.goFunc(e), f.params, f.results()).
			WithName(f.name).
			Export(f.name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return fmt.Errorf("host module %s: %w", name, err)
	}
	return nil
}

// costCall is the price of a call, in units of fuel, in addition to its work: about the
// time of the cheapest function.
const costCall = 100

func (f function) goFunc(e *edition) api.GoModuleFunc {
	void := f.results() == nil
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		w := worldFrom(ctx)
		if w == nil {
			panic(fmt.Errorf("%s: %w", f.name, errNoWorld))
		}
		defer translatePanic(f.name)
		select {
		case <-w.closed:
			panic(stop{errClosed})
		default:
		}
		w.checkpoint() // some guests check their counter rarely between two calls
		w.opts.Charge(costCall)
		errno := f.run(guest{ctx, w, e, mod.ExportedMemory(abi.ExportMemory), stack})
		if !void {
			stack[0] = uint64(errno)
		}
	}
}

// translatePanic, deferred by the function with a name, turns a panic that ends the guest into
// a trap with its reason, and any other panic into [ErrPanic].
func translatePanic(name string) {
	switch r := recover().(type) {
	case nil:
	case stop:
		panic(r.err) // the only way to end a guest
	default:
		panic(fmt.Errorf("%w: %s: %v\n%s", ErrPanic, name, r, debug.Stack()))
	}
}
