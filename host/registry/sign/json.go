package sign

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/tool"
)

// maxBytes limits the size of every document; a larger one is an error. Statements and
// envelopes have about 1 KiB, and cosign's payloads seldom more.
const maxBytes = 64 << 10

// object is a JSON object. The code that reads it removes its keys one by one; keys that
// remain at the end are unknown.
type object = map[string]any

// parse reads one JSON object. It refuses everything that other readers could understand in
// another way: a key that occurs twice, invalid characters, bytes after the object. Keys keep
// their case; json.Unmarshal ignores case for structs.
func parse(data []byte) (o object, err error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("it has more than %d bytes", maxBytes)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("it is not valid UTF-8")
	}
	if err := tool.CheckJSON(data); err != nil {
		return nil, fmt.Errorf("it %w", err)
	}
	if json.Unmarshal(data, &o) != nil || o == nil {
		return nil, errors.New("it is not a JSON object")
	}
	return o, nil
}

// takeKey removes a key from an object and returns its value. It is an error if the value
// has another type, or if the key is missing and not optional.
func takeKey[T any](o object, key string, optional bool) (T, error) {
	v, there := o[key]
	delete(o, key)
	t, ok := v.(T)
	switch {
	case ok || !there && optional:
		return t, nil
	case !there:
		return t, fmt.Errorf("the key %q is not there", key)
	}
	return t, fmt.Errorf("%q is of another type", key)
}

// checkNoneLeft returns an error if an object still holds keys, which are unknown then.
func checkNoneLeft(o object) error {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		return fmt.Errorf("unknown key %.40q", key)
	}
	return nil
}
