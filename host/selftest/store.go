package selftest

import (
	"errors"
	"fmt"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/selftest/machine"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// The offset of the error's case in the results of the store, and the case of an exceeded
// limit.
const (
	kvError = 8
	kvQuota = 1
)

// storeSet adds a call of kv.set, and returns its result.
func (s *script) storeSet(key string, value span) (*call, span) {
	k, result := s.text(key), s.reserve(24)
	return s.add("kv.set", k.at, k.n, value.at, value.n, 0, uint64(0), result.at), result
}

// storeGet adds a call of kv.get, and returns its result.
func (s *script) storeGet(key string) (*call, span) {
	k, result := s.text(key), s.reserve(24)
	return s.add("kv.get", k.at, k.n, result.at), result
}

func storeAttacks() []Attack {
	// This machine does the same as the plain one, and has other bytes.
	another := &machine.Options{Data: []w.Segment{{Offset: machine.BufferBase, Bytes: []byte("another")}}}
	return []Attack{
		{Name: "store-of-another", kinds: native, Description: "Find what a module of the same name keeps in this session.",
			run: storeAttack("kv: a store for each module", func(g *Guest) { g.machineOptions = another })},
		{Name: "store-of-another-session", kinds: native, Description: "Find what the same module keeps in another session.",
			run: storeAttack("kv: stores for each session", func(g *Guest) { g.Session += " another" })},
		{Name: "store-flood", kinds: native, Description: "Keep more than a store may hold.", run: storeFlood},
	}
}

// storeAttack has one guest store a value, checks that it is stored, and has another
// guest look for it.
func storeAttack(by string, other func(*Guest)) func(*trial) (string, error) {
	return func(t *trial) (string, error) {
		g := Guest{WantsStore: true, Session: t.hostPath("session")}
		first := &script{}
		_, result := first.storeSet("key", first.text("value"))
		r, err := t.runReport(g, first)
		if err != nil {
			return "", err
		}
		if b := r.span(result); b[0] != 0 {
			return "", newUntried("kv.set says %x", b)
		}
		look := func(g Guest) (bool, error) {
			s := &script{}
			c, result := s.storeGet("key")
			r, err := t.runReport(g, s)
			if err != nil {
				return false, err
			}
			b := r.span(result)
			if r.callCount(c) != 1 || b[0] != 0 {
				return false, newUntried("kv.get says %x", b)
			}
			return b[kvError] == 1, nil
		}
		if found, err := look(g); err != nil || !found {
			return "", errors.Join(err, newUntried("what is kept is not there"))
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
		_, last = s.storeSet(fmt.Sprint("key", i), value)
	}
	r, err := t.runReport(Guest{WantsStore: true}, s)
	if err != nil {
		return "", err
	}
	switch b := r.span(last); {
	case b[0] == 0:
		return "", errors.New("it worked: kv.set")
	case b[kvError] != kvQuota:
		return "", newUntried("kv.set says %x", b)
	}
	return "kv: the limit of a store", nil
}

// addedStore is the attack of an added tool that asks for a store and was given none.
func addedStore(t *trial) (string, error) {
	s := &script{}
	set, setResult := s.storeSet("key", s.text("value"))
	get, getResult := s.storeGet("key")
	return "kv: it was given no store", t.runDenied(Guest{WantsStore: true, Allowance: &tool.Allowance{}}, s, denial{set, setResult, kvError}, denial{get, getResult, kvError})
}
