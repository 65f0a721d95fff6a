package native

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime/debug"
	"sync"
	"unsafe"

	"github.com/tetratelabs/wazero"
)

// EngineVersion is the engine's version in go.mod. Before changing it, check that [Supported]
// still holds: cache.fileCache holds a filecache.Cache, and deserializeCompiledModule reads
// the code in one step, into the memory from which it runs. See RATIONALE, "Why does the
// engine get its native code from us?"
const EngineVersion = "v1.12.0"

const (
	enginePath = "github.com/tetratelabs/wazero"
	ourPath    = "github.com/stockade-dev/stockade"
)

// LinkedVersion returns the version of the engine in this program, with its replacement in
// go.mod. It returns EngineVersion if the version is unknown.
func LinkedVersion() string { return cmp.Or(linkedVersion(), EngineVersion) }

func linkedVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	if dep := dependency(info); dep != nil {
		return fmt.Sprint(dep.Version, dep.Replace)
	}
	if info.Main.Path == ourPath { // our tests do not list their dependencies
		return fmt.Sprint(EngineVersion, (*debug.Module)(nil))
	}
	return ""
}

func dependency(info *debug.BuildInfo) *debug.Module {
	for _, dep := range info.Deps {
		if dep.Path == enginePath {
			return dep
		}
	}
	return nil
}

// fileVersion returns the version that the engine writes into its files and expects there
// (its internal/version). In tests it may differ from the version that is linked.
func fileVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if dep := dependency(info); dep != nil {
			return dep.Version
		}
		if v := info.Main.Version; v != "" && v != "(devel)" {
			return v
		}
	}
	return "dev"
}

// Supported reports whether the engine can use a [NewCache]. If its version is another or
// unknown, it cannot, and uses files of its own.
var Supported = sync.OnceValue(func() bool {
	return linkedVersion() == fmt.Sprint(EngineVersion, (*debug.Module)(nil)) && fileCacheField(wazero.NewCompilationCache()).IsValid()
})

// NewCache returns a cache for the engine that holds the code of f under the name, and stores
// nothing. f has to stay open until the module is compiled; nil: the cache is empty. It panics
// unless Supported.
//
// The function asked returns the last name for which the engine has asked; "": it has not
// asked. The engine names code by a hash of the whole module and of the features of the
// processor.
func NewCache(name string, f *File) (_ wazero.CompilationCache, asked func() string) {
	files := &fileCache{name: name, f: f}
	c := wazero.NewCompilationCache()
	fileCacheField(c).Set(reflect.ValueOf(files))
	return c, func() string { return files.asked }
}

// fileCacheField returns the field of the engine's cache that holds its files. The value is
// invalid if the engine is not as expected.
func fileCacheField(c wazero.CompilationCache) reflect.Value {
	v := reflect.ValueOf(c)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	f := v.Elem().FieldByName("fileCache")
	if !f.IsValid() || f.Kind() != reflect.Interface || !reflect.TypeFor[*fileCache]().Implements(f.Type()) {
		return reflect.Value{}
	}
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}

// fileCache implements the engine's internal/filecache.Cache.
type fileCache struct {
	name, asked string // name of the code, and the last name that the engine asked for
	f           *File
}

func (c *fileCache) Get(key [32]byte) (io.ReadCloser, bool, error) {
	c.asked = hex.EncodeToString(key[:])
	if c.f == nil || c.asked != c.name {
		return nil, false, nil
	}
	return io.NopCloser(c.f.stream()), true, nil
}

func (c *fileCache) Add([32]byte, io.Reader) error { return errors.ErrUnsupported }

func (c *fileCache) Delete([32]byte) error { return nil }
