package selftest

import (
	"errors"
	"fmt"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/selftest/machine"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// Where the case of an error lies in the results of the store, and the case of a limit.
const (
	kvError = 8
	kvQuota = 1
)

// keep is a call of kv.set, and its result.
func (s *script) keep(key string, value span) (*call, span) {
	k, result := s.text(key), s.room(24)
	return s.add("kv.set", k.at, k.n, value.at, value.n, 0, uint64(0), result.at), result
}

// kept is a call of kv.get, and its result.
func (s *script) kept(key string) (*call, span) {
	k, result := s.text(key), s.room(24)
	return s.add("kv.get", k.at, k.n, result.at), result
}

func storeAttacks() []Attack {
	// It does as much as the plain one, and has other bytes.
	another := &machine.Options{Data: []w.Segment{{Offset: machine.BufferBase, Bytes: []byte("another")}}}
	return []Attack{
		{Name: "store-of-another", kinds: native, Tries: "Find what a module of the same name keeps in this session.",
			run: storeSeen("kv: a store for each module", func(g *Guest) { g.own = another })},
		{Name: "store-of-another-session", kinds: native, Tries: "Find what the same module keeps in another session.",
			run: storeSeen("kv: stores for each session", func(g *Guest) { g.Session += " another" })},
		{Name: "store-flood", kinds: native, Tries: "Keep more than a store may hold.", run: storeFlood},
	}
}

// storeSeen has one guest keep something, sees that it is kept, and has another one look
// for it.
func storeSeen(by string, other func(*Guest)) func(*trial) (string, error) {
	return func(t *trial) (string, error) {
		g := Guest{Keeps: true, Session: t.host("session")}
		first := &script{}
		_, result := first.keep("key", first.text("value"))
		r, err := t.report(g, first)
		if err != nil {
			return "", err
		}
		if b := r.span(result); b[0] != 0 {
			return "", notTried("kv.set says %x", b)
		}
		look := func(g Guest) (bool, error) {
			s := &script{}
			c, result := s.kept("key")
			r, err := t.report(g, s)
			if err != nil {
				return false, err
			}
			b := r.span(result)
			if r.times(c) != 1 || b[0] != 0 {
				return false, notTried("kv.get says %x", b)
			}
			return b[kvError] == 1, nil
		}
		if found, err := look(g); err != nil || !found {
			return "", errors.Join(err, notTried("what is kept is not there"))
		}
		other(&g)
		found, err := look(g)
		if err == nil && found {
			err = errors.New("it finds what is not its own")
		}
		return by, err
	}
}

func storeFlood(t *trial) (string, error) {
	s := &script{}
	value := span{machine.BufferBase, policy.MaxStoreValueBytes}
	var last span
	for i := range 6 {
		_, last = s.keep(fmt.Sprint("key", i), value)
	}
	r, err := t.report(Guest{Keeps: true}, s)
	if err != nil {
		return "", err
	}
	switch b := r.span(last); {
	case b[0] == 0:
		return "", errors.New("it worked: kv.set")
	case b[kvError] != kvQuota:
		return "", notTried("kv.set says %x", b)
	}
	return "kv: the limit of a store", nil
}

// addedStore is the attack of a tool that was added, asks for a store and was not given
// one.
func addedStore(t *trial) (string, error) {
	s := &script{}
	set, setResult := s.keep("key", s.text("value"))
	get, getResult := s.kept("key")
	return "kv: it was given no store", t.deniedAll(Guest{Keeps: true, Added: &tool.Allowance{}}, s, denial{set, setResult, kvError}, denial{get, getResult, kvError})
}
