package hostmod

import (
	"errors"
	"fmt"

	"github.com/stockade-dev/stockade/host/policy"
)

// kvResult is the layout of all results of kv: error is larger than the other values, and its
// u64 makes the alignment 8.
var kvResult = layout{size: 24, align: 8, payload: 8, errorText: 16}

// The cases of the variant error of kv, see wit/.
const (
	kvDenied = iota
	kvQuota
	kvFailed
)

// kvCall is a call of a function whose first parameters are a key or a prefix of keys.
type kvCall struct {
	reply
	store policy.Store // nil: not granted
	key   string       // key, or prefix of keys
}

// withStore returns a function that lifts the key and calls rest. If the store is not granted
// or the key is too long, it refuses instead. what names the key in errors.
func withStore(what string, rest func(kvCall) error) func(*guest) error {
	return replies(kvResult, func(r reply) (err error) {
		c := kvCall{reply: r}
		if c.world != nil {
			c.store = c.world.Grant.Store()
		}
		if why := c.world.whyDenied(c.store != nil, "the key-value store"); why != "" {
			return refusal{kvDenied, why}
		}
		if n := c.u32(1); n > policy.MaxStoreKeyBytes {
			return refusal{kvFailed, fmt.Sprintf("%s has %d bytes; it may have %d", what, n, policy.MaxStoreKeyBytes)}
		}
		if c.key, err = c.mem.String(what, c.u32(0), c.u32(1), policy.MaxStoreKeyBytes); err != nil {
			return err
		}
		return rest(c)
	})
}

// kvGet is kv.get. Parameters: key (pointer, length), result pointer.
func kvGet(c kvCall) error {
	r := c.record()
	if value, ok := c.store.Get(c.key); ok {
		r.u8(c.payload, 1)
		r.bytes(c.guest, c.payload+4, value)
	}
	return c.put(r)
}

// kvSet is kv.set. Secrets are removed from the value, because values of the store can get
// into the log. Parameters: key (pointer, length), value (pointer, length), ttl-ms (option),
// result pointer.
func kvSet(c kvCall) error {
	var ttl *uint64
	if c.option("ttl-ms", 4) {
		ttl = &c.stack[5]
	}
	if c.err != nil {
		return c.err
	}
	if n := c.u32(3); n > policy.MaxStoreValueBytes {
		return c.failQuota(policy.MaxStoreValueBytes)
	}
	value, err := c.mem.Bytes("value", c.u32(2), c.u32(3), policy.MaxStoreValueBytes)
	if err != nil {
		return err
	}
	if known := c.world.Redact; known.Finds(value) {
		value = []byte(known.Text(string(value)))
	}
	switch {
	case c.key == "":
		return refusal{kvFailed, "the key is empty"}
	case len(c.key) > policy.MaxStoreKeyBytes: // replacing bad UTF-8 makes it longer
		return refusal{kvFailed, "the key is too long"}
	case c.world.Redact.Finds([]byte(c.key)):
		return refusal{kvFailed, "the key holds a secret"}
	case len(value) > policy.MaxStoreValueBytes:
		return c.failQuota(policy.MaxStoreValueBytes)
	}
	err = c.store.Set(c.key, value, ttl)
	if full, ok := errors.AsType[*policy.StoreFullError](err); ok {
		return c.failQuota(full.Limit)
	} else if err != nil {
		return refusal{kvFailed, err.Error()}
	}
	return c.put(c.record())
}

func (c kvCall) failQuota(limit int) error {
	r := c.failed(kvQuota)
	r.u64(c.errorText, uint64(limit))
	return c.put(r)
}

// kvDelete is kv.delete. Parameters: key (pointer, length), result pointer.
func kvDelete(c kvCall) error {
	c.store.Delete(c.key)
	return c.put(c.record())
}

// kvKeys is kv.keys. Parameters: prefix (pointer, length), limit, result pointer.
func kvKeys(c kvCall) error {
	keys := c.store.Keys(c.key, int(min(c.u32(2), 1<<30)))
	const size = 8 // of a string: pointer and length
	list := record{make([]byte, len(keys)*size)}
	for i, key := range keys {
		list.bytes(c.guest, i*size, []byte(key))
	}
	r := c.record()
	r.list(c.guest, c.payload, list.b, size, 4)
	return c.put(r)
}
