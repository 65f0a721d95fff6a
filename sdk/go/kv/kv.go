// Package kv is a small store that outlives a call, for tools with tool.KeepsData. The
// tools of a module share one, in one session, and no other module reads it. A call has
// it alone: no other call of the module runs beside one that has a store.
//
// What a call sets or deletes counts when the call succeeds. Of one that fails, nothing
// does. It is written to the log of the session, so it is no place for secrets: values
// that the host knows for such are replaced.
//
// A key has at most 256 bytes, a value 64 KiB, a store 1,000 keys and, unless the user
// says otherwise, 256 KiB: keys, values, and 64 bytes for each.
package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

var (
	// ErrDenied: the module was not granted a store. It is fs.ErrPermission too.
	ErrDenied = abi.Sentinel("store denied", fs.ErrPermission)
	// ErrFailed: the key is too long, there are too many, or the host could not read or
	// write the store.
	ErrFailed = errors.New("store failed")
)

// QuotaError says that a value has too many bytes, or does not fit into the store of
// the module or those of all modules.
type QuotaError struct {
	Limit uint64 // bytes
}

func (e *QuotaError) Error() string {
	return fmt.Sprintf("store is full: the limit is %d bytes", e.Limit)
}

// resultSize is that of every result here: the case at 0, and at 8 either the
// value or an error of 16 bytes, whose case is at 8 and whose u64 or text is
// at 16 because a u64 is aligned to 8.
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

// Get returns the value of key. Without one, ok is false and err is nil.
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

// Set stores a value, replacing an earlier one. After ttl it is gone; 0 keeps
// it. A ttl is counted in milliseconds; less than one counts as one.
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

// Delete removes a key. It is no error when there is none.
func Delete(key string) error {
	var f abi.Frame
	defer f.Free()
	keyPtr, keyLen := f.Text(key)
	ret, r := f.Area(resultSize)
	hostDelete(keyPtr, keyLen, ret)
	return errorOf(r)
}

// Keys returns at most limit keys that start with prefix, sorted.
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
