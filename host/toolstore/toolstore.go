// Package toolstore holds the data that tools keep beyond a call: a store for each module,
// within one session.
//
// A call has a [View] of the store of its module, and no other call has a view of that store
// meanwhile. The view collects the changes of the call. If the call succeeds, they are
// recorded with its result, as one event call.kept, and become part of the store only then. So
// the log of a session has everything that its stores contain, and [Stores.Fold] builds them
// again from the log when the session is resumed. See RATIONALE, "Why is what a tool keeps an
// event of the session?"
package toolstore

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

const (
	entryOverhead = 64 // bytes that an entry counts in addition to its key and its value

	// maxRewrites limits the recorded bytes of a session, as a multiple of the size limit of
	// its stores; beyond it Set is policy.ErrStoreExhausted. A tool that sets one key in a
	// loop stays within the size limit, but would fill the disk.
	maxRewrites = 16
)

// Entry is a key and its value.
type Entry struct {
	Key     string
	Value   []byte
	Expires int64 // milliseconds since 1970; 0: never
}

func (e Entry) bytes() int { return len(e.Key) + len(e.Value) + entryOverhead }

// ownerOf returns the owner of the store of a module. For a built-in module the owner is its
// name, for a signed module the signer and the name, and for any other module the digest of
// its bytes. So a module that takes the name of another one cannot find the other's data.
func ownerOf(m *tool.Module) string {
	switch {
	case m.Origin == tool.OriginBuiltin:
		return string(tool.OriginBuiltin) + ":" + m.Name
	case m.Signer != "":
		return "signer:" + m.Signer + "#" + m.Name
	}
	return "sha256:" + m.Digest
}

// Stores are the stores of one session. They are safe for concurrent use.
type Stores struct {
	limits policy.Limits
	now    func() time.Time

	mu            sync.Mutex
	stores        map[string]*store // by owner
	bytes         int               // bytes of all stores, and of additions in open views
	recordedBytes int               // bytes of all call.kept events that were folded
}

// store is the store of one owner. Stores.mu guards its fields, except viewOpen.
type store struct {
	viewOpen chan struct{} // has a value while a call has a view; capacity 1
	module   string        // name of the module
	entries  map[string]Entry
	bytes    int
}

// New returns the stores of a new session.
func New(limits policy.Limits, now func() time.Time) *Stores {
	return &Stores{limits: limits, now: now, stores: map[string]*store{}}
}

func (s *Stores) millis() int64 { return s.now().UnixMilli() }

// storeOf returns the store of an owner, which it makes if needed. The caller holds mu.
func (s *Stores) storeOf(owner string) *store {
	st := s.stores[owner]
	if st == nil {
		st = &store{viewOpen: make(chan struct{}, 1), entries: map[string]Entry{}}
		s.stores[owner] = st
	}
	return st
}

// Fold applies an event of type call.kept to the stores, and ignores any other event and one
// whose body was deleted. It removes an entry whose new value cannot be decoded, for example
// because it was redacted.
func (s *Stores) Fold(e session.Event) {
	var body session.ToolStoreChanges
	if e.Type != session.TypeToolStoreChanges || json.Unmarshal(e.Body, &body) != nil || body.Owner == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.storeOf(body.Owner)
	st.module = body.Module
	before := st.bytes
	for _, key := range body.Deleted {
		st.remove(key)
	}
	for _, set := range body.Set {
		st.remove(set.Key)
		entry := Entry{set.Key, []byte(set.Text), set.ExpiresMS}
		if set.Base64 != "" {
			var err error
			if entry.Value, err = base64.StdEncoding.DecodeString(set.Base64); err != nil {
				continue
			}
		}
		st.entries[set.Key] = entry
		st.bytes += entry.bytes()
	}
	s.bytes += st.bytes - before
	s.recordedBytes += len(e.Body)
}

func (st *store) remove(key string) {
	if old, ok := st.entries[key]; ok {
		st.bytes -= old.bytes()
		delete(st.entries, key)
	}
}

// Listing is the store of one module.
type Listing struct {
	Owner, Module string
	Bytes         int
	Entries       []Entry // sorted by key
}

// List returns all stores that have entries, sorted by module and owner, without the changes of
// open views.
func (s *Stores) List() []Listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Listing
	for owner, st := range s.stores {
		s.purge(st)
		if len(st.entries) == 0 {
			continue
		}
		c := Listing{Owner: owner, Module: st.module, Bytes: st.bytes}
		for _, key := range slices.Sorted(maps.Keys(st.entries)) {
			c.Entries = append(c.Entries, st.entries[key])
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Listing) int {
		return cmp.Or(strings.Compare(a.Module, b.Module), strings.Compare(a.Owner, b.Owner))
	})
	return out
}

// purge removes expired entries. The caller holds mu.
func (s *Stores) purge(st *store) {
	before, now := st.bytes, s.millis()
	for key, e := range st.entries {
		if e.expired(now) {
			st.remove(key)
		}
	}
	s.bytes += st.bytes - before
}

func (e Entry) expired(now int64) bool { return e.Expires != 0 && e.Expires <= now }

// Open returns a view of the store of a module, for one call. It waits until no other call has
// a view. If ctx ends before, the error is the cause of ctx. The caller must Close the view.
func (s *Stores) Open(ctx context.Context, module *tool.Module) (*View, error) {
	owner := ownerOf(module)
	s.mu.Lock()
	st := s.storeOf(owner)
	s.mu.Unlock()
	select {
	case st.viewOpen <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.purge(st)
	return &View{s: s, st: st, owner: owner, module: module.Name, entries: maps.Clone(st.entries), bytes: st.bytes, changed: map[string]int{}}, nil
}

// View is the store of a module within one call, a policy.Store for one goroutine at a time.
type View struct {
	s             *Stores
	st            *store
	owner, module string

	entries  map[string]Entry
	bytes    int
	keys     []string       // sorted keys of entries; nil before the first Keys
	changed  map[string]int // bytes that the event has for each key that was set or deleted
	writes   int            // the sum of changed
	reserved int            // bytes that this call has added to Stores.bytes
}

// Get implements policy.Store.
func (v *View) Get(key string) ([]byte, bool) {
	e, ok := v.entries[key]
	if !ok || e.expired(v.s.millis()) {
		return nil, false
	}
	return e.Value, true
}

// Set implements policy.Store.
func (v *View) Set(key string, value []byte, life *uint64) error {
	entry := Entry{Key: key, Value: value}
	if life != nil {
		const limit = 1 << 52 // milliseconds; larger numbers are not exact in JSON
		entry.Expires = v.s.millis() + int64(min(*life, limit))
	}
	old, was := v.entries[key]
	grows := entry.bytes()
	if was {
		grows -= old.bytes()
	} else if len(v.entries) >= policy.MaxStoreKeys {
		return policy.ErrTooManyKeys
	}
	limits := v.s.limits
	if grows > 0 && v.bytes+grows > limits.StoreBytes {
		return &policy.StoreFullError{Limit: limits.StoreBytes}
	}
	if err := v.reserve(v.bytes+grows, v.writes-v.changed[key]+entry.bytes()); err != nil {
		return err
	}
	v.bytes += grows
	v.entries[key] = entry
	v.recordChange(key, entry.bytes())
	if at, found := slices.BinarySearch(v.keys, key); v.keys != nil && !found {
		v.keys = slices.Insert(v.keys, at, key)
	}
	return nil
}

// reserve checks the limits of the session, and reserves the bytes by which the store grows.
// bytes is the new size of the store, and writes the new size of the event that the call would
// record.
func (v *View) reserve(bytes, writes int) error {
	s := v.s
	s.mu.Lock()
	defer s.mu.Unlock()
	more := max(bytes-v.st.bytes-v.reserved, 0)
	switch {
	case more > 0 && s.bytes+more > s.limits.SessionStoreBytes:
		return &policy.StoreFullError{Limit: s.limits.SessionStoreBytes}
	case s.recordedBytes+writes > maxRewrites*s.limits.SessionStoreBytes:
		return policy.ErrStoreExhausted
	}
	s.bytes += more
	v.reserved += more
	return nil
}

// recordChange notes that a key was changed, and the bytes that the event has for it.
func (v *View) recordChange(key string, bytes int) {
	v.writes += bytes - v.changed[key]
	v.changed[key] = bytes
}

// Delete implements policy.Store.
func (v *View) Delete(key string) {
	old, ok := v.entries[key]
	if !ok {
		return
	}
	v.bytes -= old.bytes()
	delete(v.entries, key)
	v.recordChange(key, len(key)+entryOverhead)
	if at, found := slices.BinarySearch(v.keys, key); found {
		v.keys = slices.Delete(v.keys, at, at+1)
	}
}

// Keys implements policy.Store.
func (v *View) Keys(prefix string, limit int) []string {
	if v.keys == nil {
		v.keys = slices.AppendSeq(make([]string, 0, len(v.entries)), maps.Keys(v.entries))
		slices.Sort(v.keys)
	}
	at, _ := slices.BinarySearch(v.keys, prefix)
	var out []string
	for now := v.s.millis(); at < len(v.keys) && len(out) < limit && strings.HasPrefix(v.keys[at], prefix); at++ {
		if !v.entries[v.keys[at]].expired(now) {
			out = append(out, v.keys[at])
		}
	}
	return out
}

// Changes returns the changes of the call for the log; false: there are none. name is the name of
// the called tool.
func (v *View) Changes(name string) (session.ToolStoreChanges, bool) {
	body := session.ToolStoreChanges{Tool: name, Module: v.module, Owner: v.owner}
	now := v.s.millis()
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(v.changed)) {
		entry, ok := v.entries[key]
		if !ok || entry.expired(now) {
			if _, was := v.st.entries[key]; was {
				body.Deleted = append(body.Deleted, key)
			}
			continue
		}
		set := session.ToolStoreEntry{Key: key, ExpiresMS: entry.Expires}
		if isText(entry.Value) {
			set.Text = string(entry.Value)
		} else {
			set.Base64 = base64.StdEncoding.EncodeToString(entry.Value)
		}
		body.Set = append(body.Set, set)
	}
	return body, len(body.Set)+len(body.Deleted) > 0
}

// isText reports whether a value can be recorded as text. A value with control characters
// cannot: each would take six bytes.
func isText(value []byte) bool {
	return utf8.Valid(value) && !slices.ContainsFunc(value, func(b byte) bool { return b < ' ' && b != '\n' && b != '\t' })
}

// Close ends the view, so that the next call can open the store; a second Close blocks. Changes of
// the view are lost unless their event was folded before.
func (v *View) Close() {
	v.s.mu.Lock()
	v.s.bytes -= v.reserved
	v.reserved = 0
	v.s.mu.Unlock()
	<-v.st.viewOpen
}
