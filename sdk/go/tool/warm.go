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

// Warm has fn called once before the host keeps the memory that each call of
// the module begins with. It is called from an init function, for what is slow
// the first time: to build tables, compile expressions, start an interpreter.
// There is nothing for fn to see: no files, no host functions, a clock that
// stands still and random numbers that are the same for everybody. Whatever it
// leaves in memory is there in every call, so it must hold nothing that should
// differ between calls. Hosts may leave it out.
func Warm(fn func()) { std.warmers = append(std.warmers, fn) }

// spare is how much more memory a module has when its calls begin than it
// needs then. A guest whose memory grows in a call is not used again.
const spare = 4 << 20

// warm does what every call does around a tool, with made-up data and without
// the tool, so that package encoding/json knows the types, and the memory that
// the runtime needs is there.
func (r *registry) warm() {
	runtime.KeepAlive(make([]byte, spare))
	runtime.GC() // not at the end: calls would be slower afterwards

	for _, fn := range r.warmers {
		fn()
	}
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(time.Hour))
	defer cancel()
	_ = CallFrom(WithCall(ctx, Call{}))
	for _, e := range r.entries {
		if e.Capabilities.Files != "" {
			_, _ = os.ReadDir("/") // in which there is nothing yet
			_, _ = os.ReadFile("/nothing")
		}
		if result := e.warm(); result != nil {
			abi.Post(lower(result, nil, nil))
		}
	}
}

// warmer returns a function that decodes arguments and encodes a result.
func warmer[In, Out any](decode func(raw []byte) (In, error)) func() []byte {
	return func() (result []byte) {
		defer func() { _ = recover() }() // of a method of the author's that did not expect such data
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

// fill puts something into every part of a value.
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
