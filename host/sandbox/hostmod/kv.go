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
	*guest
	store policy.Store // nil: not granted
	key   string       // key, or prefix of keys
	out   uint32       // result pointer
}

// withStore lifts the key and calls rest. If the store is not granted or the key is too long,
// it writes an error instead. what names the key in errors.
func withStore(g *guest, out uint32, what string, rest func(kvCall) error) error {
	c := kvCall{guest: g, out: out}
	if g.world != nil {
		c.store = g.world.Grant.Store()
	}
	if why := g.world.whyDenied(c.store != nil, "the key-value store"); why != "" {
		return c.fail(kvDenied, why)
	}
	if n := g.u32(1); n > policy.MaxStoreKeyBytes {
		return c.fail(kvFailed, fmt.Sprintf("%s has %d bytes; it may have %d", what, n, policy.MaxStoreKeyBytes))
	}
	var err error
	if c.key, err = g.mem.String(what, g.u32(0), g.u32(1), policy.MaxStoreKeyBytes); err != nil {
		return err
	}
	return rest(c)
}

func (c kvCall) fail(errorCase uint8, why string) error {
	return kvResult.fail(c.guest, c.out, errorCase, why)
}

func (c kvCall) put(r record) error { return kvResult.put(c.guest, c.out, r) }

// kvGet is kv.get. Parameters: key (pointer, length), result pointer.
func kvGet(g *guest) error {
	return withStore(g, g.u32(2), "the key", func(c kvCall) error {
		r := kvResult.record()
		if value, ok := c.store.Get(c.key); ok {
			r.u8(kvResult.payload, 1)
			if err := r.bytes(g, kvResult.payload+4, value); err != nil {
				return err
			}
		}
		return c.put(r)
	})
}

// kvSet is kv.set. Secrets are removed from the value, because values of the store can get
// into the log. Parameters: key (pointer, length), value (pointer, length), ttl-ms (option),
// result pointer.
func kvSet(g *guest) error {
	hasTTL, err := g.option("ttl-ms", 4)
	if err != nil {
		return err
	}
	return withStore(g, g.u32(6), "the key", func(c kvCall) error {
		if n := g.u32(3); n > policy.MaxStoreValueBytes {
			return c.failQuota(policy.MaxStoreValueBytes)
		}
		value, err := g.mem.Bytes("value", g.u32(2), g.u32(3), policy.MaxStoreValueBytes)
		if err != nil {
			return err
		}
		if known := g.world.Redact; known.Finds(value) {
			value = []byte(known.Text(string(value)))
		}
		var ttl *uint64
		if hasTTL {
			ttl = &g.stack[5]
		}
		switch {
		case c.key == "":
			return c.fail(kvFailed, "the key is empty")
		case len(c.key) > policy.MaxStoreKeyBytes: // replacing bad UTF-8 makes it longer
			return c.fail(kvFailed, "the key is too long")
		case g.world.Redact.Finds([]byte(c.key)):
			return c.fail(kvFailed, "the key holds a secret")
		case len(value) > policy.MaxStoreValueBytes:
			return c.failQuota(policy.MaxStoreValueBytes)
		}
		err = c.store.Set(c.key, value, ttl)
		if full, ok := errors.AsType[*policy.StoreFullError](err); ok {
			return c.failQuota(full.Limit)
		} else if err != nil {
			return c.fail(kvFailed, err.Error())
		}
		return c.put(kvResult.record())
	})
}

func (c kvCall) failQuota(limit int) error {
	r := kvResult.failed(kvQuota)
	r.u64(kvResult.errorText, uint64(limit))
	return c.put(r)
}

// kvDelete is kv.delete. Parameters: key (pointer, length), result pointer.
func kvDelete(g *guest) error {
	return withStore(g, g.u32(2), "the key", func(c kvCall) error {
		c.store.Delete(c.key)
		return c.put(kvResult.record())
	})
}

// kvKeys is kv.keys. Parameters: prefix (pointer, length), limit, result pointer.
func kvKeys(g *guest) error {
	return withStore(g, g.u32(3), "the prefix", func(c kvCall) error {
		keys := c.store.Keys(c.key, int(min(g.u32(2), 1<<30)))
		const size = 8 // of a string: pointer and length
		list := record{make([]byte, len(keys)*size)}
		for i, key := range keys {
			if err := list.bytes(g, i*size, []byte(key)); err != nil {
				return err
			}
		}
		r := kvResult.record()
		if err := r.list(g, kvResult.payload, list.b, size, 4); err != nil {
			return err
		}
		return c.put(r)
	})
}
