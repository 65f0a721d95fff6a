//go:build !wasip1

package kv

import (
	"errors"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

// answerAll sets the same answer for every function of the host.
func answerAll(t *testing.T, answer func(r abi.Record, f *abi.Frame)) {
	t.Helper()
	one := func(keyPtr, keyLen, ret uint32) {
		if key := string(abi.Take(keyPtr, keyLen)); key != "key" {
			t.Errorf("host got the key %q", key)
		}
		answer(abi.Take(ret, resultSize), new(abi.Frame))
	}
	hostGet, hostDelete = one, one
	hostKeys = func(prefixPtr, prefixLen, limit, ret uint32) {
		if limit != 7 {
			t.Errorf("host got the limit %d", limit)
		}
		one(prefixPtr, prefixLen, ret)
	}
	hostSet = func(keyPtr, keyLen, valuePtr, valueLen, hasTTL uint32, millis uint64, ret uint32) {
		if v := string(abi.Take(valuePtr, valueLen)); v != "value" || hasTTL != 1 || millis != 1500 {
			t.Errorf("host got value %q, ttl %d %d", v, hasTTL, millis)
		}
		one(keyPtr, keyLen, ret)
	}
	t.Cleanup(func() {
		if n := abi.Live(); n != 0 {
			t.Errorf("%d blocks left", n)
		}
	})
}

func TestGet(t *testing.T) {
	answerAll(t, func(r abi.Record, f *abi.Frame) { r.SetCase(8, 1); r.SetPair(12)(f.Text("v")) })
	if v, ok, err := Get("key"); string(v) != "v" || !ok || err != nil {
		t.Errorf("got %q, %v, %v", v, ok, err)
	}
	answerAll(t, func(abi.Record, *abi.Frame) {})
	if v, ok, err := Get("key"); v != nil || ok || err != nil {
		t.Errorf("without a value got %q, %v, %v", v, ok, err)
	}
}

func TestKeys(t *testing.T) {
	answerAll(t, func(r abi.Record, f *abi.Frame) { r.SetPair(8)(f.Texts([]string{"a", "", "c"}), 3) })
	if keys, err := Keys("key", 7); err != nil || !slices.Equal(keys, []string{"a", "", "c"}) {
		t.Errorf("got %q, %v", keys, err)
	}
}

func TestSetWithoutTTL(t *testing.T) {
	answerAll(t, func(abi.Record, *abi.Frame) {})
	inner := hostSet
	hostSet = func(keyPtr, keyLen, valuePtr, valueLen, hasTTL uint32, millis uint64, ret uint32) {
		if hasTTL != 0 || millis != 0 {
			t.Errorf("host got ttl %d %d", hasTTL, millis)
		}
		inner(keyPtr, keyLen, valuePtr, valueLen, 1, 1500, ret)
	}
	if err := Set("key", []byte("value"), 0); err != nil {
		t.Error(err)
	}
}

func TestErrorsOfEveryFunction(t *testing.T) {
	functions := map[string]func() error{
		"get":    func() error { _, _, err := Get("key"); return err },
		"set":    func() error { return Set("key", []byte("value"), 1500*time.Millisecond) },
		"delete": func() error { return Delete("key") },
		"keys":   func() error { _, err := Keys("key", 7); return err },
	}
	for name, call := range functions {
		t.Run(name, func(t *testing.T) {
			for i, want := range []error{ErrDenied, nil, ErrFailed} {
				answerAll(t, func(r abi.Record, f *abi.Frame) {
					r.SetCase(0, 1)
					r.SetCase(8, uint8(i))
					if want == nil {
						r.SetU64(16, 1<<40)
					} else {
						r.SetPair(16)(f.Text("because"))
					}
				})
				err := call()
				if want == nil {
					if quota, ok := errors.AsType[*QuotaError](err); !ok || quota.Limit != 1<<40 {
						t.Errorf("case %d is %v", i, err)
					}
				} else if !errors.Is(err, want) || err.Error() != want.Error()+": because" {
					t.Errorf("case %d is %v", i, err)
				}
			}
			answerAll(t, func(abi.Record, *abi.Frame) {})
			if err := call(); err != nil {
				t.Error(err)
			}
		})
	}
	if !errors.Is(ErrDenied, fs.ErrPermission) {
		t.Error("a denial is not fs.ErrPermission")
	}
}
