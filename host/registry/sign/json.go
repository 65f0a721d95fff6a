package sign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"
)

const (
	// maxBytes bounds every document: statements and envelopes have about 1 KiB, and
	// cosign's payloads seldom more.
	maxBytes = 64 << 10
	maxDepth = 16
)

// object is a JSON object whose keys are taken out one by one, so that what is
// left is unknown.
type object map[string]any

// parse reads one JSON object that means the same to every reader: no key twice,
// no invalid characters, nothing after it. Keys are compared to the letter, which
// json.Unmarshal does not do.
func parse(data []byte) (object, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("it has more than %d bytes", maxBytes)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("it is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := value(dec, maxDepth)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("something follows the JSON object")
	}
	o, ok := v.(object)
	if !ok {
		return nil, errors.New("it is not a JSON object")
	}
	return o, nil
}

func value(dec *json.Decoder, depth int) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if depth == 0 {
		return nil, fmt.Errorf("more than %d values within each other", maxDepth)
	}
	switch token {
	case json.Delim('{'):
		o := object{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, fmt.Errorf("it is not JSON: %w", err)
			}
			name := key.(string) // the decoder takes no other key
			if _, twice := o[name]; twice {
				return nil, fmt.Errorf("the key %.40q is there twice", name)
			}
			if o[name], err = value(dec, depth-1); err != nil {
				return nil, err
			}
		}
		token = o
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			e, err := value(dec, depth-1)
			if err != nil {
				return nil, err
			}
			list = append(list, e)
		}
		token = list
	default:
		return token, nil
	}
	if _, err := dec.Token(); err != nil { // the end of either
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	return token, nil
}

// take takes a value of a type out of an object; it has to be there, unless it is
// optional.
func take[T any](o object, key string, optional bool) (T, error) {
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

// unknown is the error if anything was not taken.
func (o object) unknown() error {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		return fmt.Errorf("unknown key %.40q", key)
	}
	return nil
}
