// Package kv is a small store that outlives a call, for tools with tool.KeepsData. The
// tools of a module share one store in a session; other modules cannot read it. While a
// call uses the store, no other call of the module runs.
//
// Changes count if the call succeeds, and are dropped if it fails. They are written to the
// log of the session, so the store is no place for secrets: values that the host knows to
// be secret are replaced.
//
// A key has at most 256 bytes, a value 64 KiB, a store 1,000 keys and, unless the user
// sets another limit, 256 KiB: keys, values, and 64 bytes for each key.
package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

var (
	// ErrDenied is returned if the module was not granted a store. It is fs.ErrPermission,
	// too.
	ErrDenied = abi.Sentinel("store denied", fs.ErrPermission)
	// ErrFailed is returned if the key is too long, if there are too many keys, or if the host
	// could not read or write the store.
	ErrFailed = errors.New("store failed")
)

// QuotaError is the error for a value that has too many bytes, or does not fit into the store
// of the module or the stores of all modules.
type QuotaError struct {
	Limit uint64 // bytes
}

func (e *QuotaError) Error() string {
	return fmt.Sprintf("store is full: the limit is %d bytes", e.Limit)
}

// resultSize is the size of every result here, in bytes. The case is at 0. At 8 is either the
// value or an error of 16 bytes, with its case at 8 and its u64 or text at 16, because a u64
// is aligned to 8.
const resultSize = 24

func errorOf(r abi.Record) error {
	if !r.Bool(0) {
		return nil
	}
	switch r.Case(8) {
	case 0:
		return fmt.Errorf("%w: %s", ErrDenied, r.Text(16))
	case 1:
		return &QuotaError{Limit: r.U64(16)}
	default:
		return fmt.Errorf("%w: %s", ErrFailed, r.Text(16))
	}
}

// Get returns the value of key. If there is none, ok is false and err is nil.
func Get(key string) (value []byte, ok bool, err error) {
	var f abi.Frame
	defer f.Free()
	keyPtr, keyLen := f.Text(key)
	ret, r := f.Area(resultSize)
	hostGet(keyPtr, keyLen, ret)
	if err := errorOf(r); err != nil {
		return nil, false, err
	}
	if !r.Bool(8) {
		return nil, false, nil
	}
	return r.Bytes(12), true, nil
}

// Set stores a value, replacing an earlier one. The host deletes it after ttl, in whole
// milliseconds, at least one; 0: never.
func Set(key string, value []byte, ttl time.Duration) error {
	var f abi.Frame
	defer f.Free()
	keyPtr, keyLen := f.Text(key)
	valuePtr, valueLen := f.Bytes(value)
	var hasTTL uint32
	var millis uint64
	if ttl > 0 {
		hasTTL, millis = 1, uint64(max(1, ttl.Milliseconds()))
	}
	ret, r := f.Area(resultSize)
	hostSet(keyPtr, keyLen, valuePtr, valueLen, hasTTL, millis, ret)
	return errorOf(r)
}

// Delete removes a key. A missing key is no error.
func Delete(key string) error {
	var f abi.Frame
	defer f.Free()
	keyPtr, keyLen := f.Text(key)
	ret, r := f.Area(resultSize)
	hostDelete(keyPtr, keyLen, ret)
	return errorOf(r)
}

// Keys returns the first limit keys that start with prefix, sorted.
func Keys(prefix string, limit uint32) ([]string, error) {
	var f abi.Frame
	defer f.Free()
	prefixPtr, prefixLen := f.Text(prefix)
	ret, r := f.Area(resultSize)
	hostKeys(prefixPtr, prefixLen, limit, ret)
	if err := errorOf(r); err != nil {
		return nil, err
	}
	return r.Texts(8, 1), nil
}
