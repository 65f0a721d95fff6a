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

// EngineVersion is the version in go.mod. In another one, look whether
// [Supported] is still right: cache.fileCache holds a filecache.Cache, and
// deserializeCompiledModule reads the code in one go into the memory that it is
// run from. See RATIONALE, "Why does the engine get its native code from us?"
const EngineVersion = "v1.12.0"

const (
	enginePath = "github.com/tetratelabs/wazero"
	ourPath    = "github.com/stockade-dev/stockade"
)

// LinkedVersion is the version of the engine in this program, with what it was
// replaced by; EngineVersion if the program does not know.
func LinkedVersion() string { return cmp.Or(linkedVersion(), EngineVersion) }

func linkedVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	if dep := dependency(info); dep != nil {
		return fmt.Sprint(dep.Version, dep.Replace)
	}
	if info.Main.Path == ourPath { // a test of ours: these do not list what they are made of
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

// fileVersion is the version that the engine writes into its files, and that it
// looks for there (its internal/version). It is not the whole truth in a test.
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

// Supported says whether the engine takes a [NewCache]. Where it is another one,
// or the program does not know which, it has its own files.
var Supported = sync.OnceValue(func() bool {
	return linkedVersion() == fmt.Sprint(EngineVersion, (*debug.Module)(nil)) && fileCacheField(wazero.NewCompilationCache()).IsValid()
})

// NewCache makes a cache for the engine that holds this code under one name and
// takes no other. The file has to stay open until the module is compiled; nil
// is an empty cache. It panics where it is not Supported.
//
// Asked returns the name under which the engine has looked last, "" if it has
// not: a hash of all of a module and of what the processor can do.
func NewCache(name string, f *File) (_ wazero.CompilationCache, asked func() string) {
	files := &fileCache{name: name, f: f}
	c := wazero.NewCompilationCache()
	fileCacheField(c).Set(reflect.ValueOf(files))
	return c, func() string { return files.asked }
}

// fileCacheField is where a cache of the engine has its files; not valid if it is not
// what it should be.
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

// fileCache is the engine's internal/filecache.Cache.
type fileCache struct {
	name, asked string
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
