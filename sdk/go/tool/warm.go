package tool

import (
	"context"
	"encoding"
	"encoding/json"
	"os"
	"reflect"
	"runtime"
	"time"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

// Warm registers fn to run once, before the host stores the memory with which each call of the
// module begins. It is called from an init function, for work that is slow the first time:
// building tables, compiling expressions, starting an interpreter. fn sees no files, no host
// functions, a clock that stands still, and the same random numbers each time. Its memory is
// there in every call, so it must hold nothing that should differ between calls. A host may
// skip fn.
func Warm(fn func()) { std.warmers = append(std.warmers, fn) }

// spare is the memory that is free when a call begins, in bytes. A guest whose memory grows in
// a call is not used again.
const spare = 4 << 20

// warm does the work that every call does around a tool, with made-up data and without the
// tool. Then package encoding/json knows the types, and the runtime has its memory.
func (r *registry) warm() {
	runtime.KeepAlive(make([]byte, spare))
	runtime.GC() // at the end it would make the calls slower

	for _, fn := range r.warmers {
		fn()
	}
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(time.Hour))
	defer cancel()
	_ = CallFrom(WithCall(ctx, Call{}))
	for _, e := range r.entries {
		if e.Capabilities.Files != "" {
			_, _ = os.ReadDir("/") // still empty
			_, _ = os.ReadFile("/nothing")
		}
		if result := e.warm(); result != nil {
			abi.Post(lower(result, nil, nil))
		}
	}
}

// warmer returns a function that decodes made-up arguments and encodes a made-up result, which
// it returns; nil: it could not.
func warmer[In, Out any](decode func(raw []byte) (In, error)) func() []byte {
	return func() (result []byte) {
		defer func() { _ = recover() }() // a method of the author may not expect such data
		var in In
		fill(reflect.ValueOf(&in).Elem(), 0)
		if raw, err := encode(in); err == nil {
			_, _ = decode(raw)
		}
		var out Out
		fill(reflect.ValueOf(&out).Elem(), 0)
		result, _ = encode(out)
		return result
	}
}

// fill sets every part of a value to a sample, down to six levels.
func fill(v reflect.Value, depth int) {
	const deepest = 6
	if !v.CanSet() || depth > deepest {
		return
	}
	if _, special := v.Addr().Interface().(encoding.TextUnmarshaler); special {
		return
	}
	if raw, ok := v.Addr().Interface().(*json.RawMessage); ok {
		*raw = json.RawMessage(`{"sample":1}`)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("sample")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	case reflect.Interface:
		if v.NumMethod() == 0 {
			v.Set(reflect.ValueOf("sample"))
		}
	}
}
