// Package toolstore holds what tools keep beyond a call: a store for each module, within
// one session.
//
// A call has a [View] of the store of its module, and no other call has one
// meanwhile. What it changes there is an overlay: if the call succeeds, that is
// recorded with its result, as one event call.kept, and only then part of the store.
// So what a session keeps is what its log says, and [Stores.Fold] makes it again of
// the log when the session is resumed. See RATIONALE, "Why is what a tool keeps an
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
	entryOverhead = 64 // that an entry counts beside its key and its value

	// maxRewrites is how often the whole store of a session can be written anew
	// before its log takes no more: a tool that sets the same key in a loop fills no
	// quota, and the disk.
	maxRewrites = 16
)

// Entry is a key with its value.
type Entry struct {
	Key     string
	Value   []byte
	Expires int64 // milliseconds since 1970; 0: never
}

func (e Entry) bytes() int { return len(e.Key) + len(e.Value) + entryOverhead }

// ownerOf names whose store that of a module is: of a built-in module its name, of one
// that somebody has signed the signer and the name, of any other its very bytes. A
// module that takes the name of another finds nothing of that one's.
func ownerOf(m *tool.Module) string {
	switch {
	case m.Origin == tool.OriginBuiltin:
		return string(tool.OriginBuiltin) + ":" + m.Name
	case m.Signer != "":
		return "signer:" + m.Signer + "#" + m.Name
	}
	return "sha256:" + m.Digest
}

// Stores are those of one session. It is safe for concurrent use.
type Stores struct {
	limits policy.Limits
	now    func() time.Time

	mu            sync.Mutex
	stores        map[string]*store // by owner
	bytes         int               // of all stores, and what calls have added that are under way
	recordedBytes int               // bytes of all events
}

// store is that of one owner. Its entries change while the lock of all is held.
type store struct {
	viewOpen chan struct{} // holds one while a call has a view
	module   string
	entries  map[string]Entry
	bytes    int
}

// New returns the stores of a new session.
func New(limits policy.Limits, now func() time.Time) *Stores {
	return &Stores{limits: limits, now: now, stores: map[string]*store{}}
}

func (s *Stores) millis() int64 { return s.now().UnixMilli() }

// storeOf returns the store of an owner. The lock is held.
func (s *Stores) storeOf(owner string) *store {
	st := s.stores[owner]
	if st == nil {
		st = &store{viewOpen: make(chan struct{}, 1), entries: map[string]Entry{}}
		s.stores[owner] = st
	}
	return st
}

// Fold makes what an event says part of the stores, if it is one of call.kept. What
// cannot be read of it, because it was redacted or deleted, is not kept.
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

// Listing is what a module keeps.
type Listing struct {
	Owner, Module string
	Bytes         int
	Entries       []Entry // by key
}

// List lists what is kept, by module and owner. Stores without entries are left out.
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

// purge removes what has expired. The lock is held.
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

// Open returns the view that a call has of the store of its module, when no other call
// has one any more. It fails when ctx ends before that. The view has to be closed.
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

// View is the store of a module as one call sees it, which is used by one goroutine at
// a time. It implements policy.Store.
type View struct {
	s             *Stores
	st            *store
	owner, module string

	entries  map[string]Entry
	bytes    int
	keys     []string       // of entries, sorted; nil: not asked for yet
	changed  map[string]int // the keys that were set or deleted, and how much of them is to be recorded
	writes   int            // the sum of changed
	reserved int            // of Stores.bytes
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
		const most = 1 << 52 // milliseconds, so that it is a number in JSON
		entry.Expires = v.s.millis() + int64(min(*life, most))
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

// reserve takes what the store would grow by out of what the session may have, and sees
// that the log takes what the call would have recorded.
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

// Changes is what the call has changed, for the log; false if that is nothing.
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

// isText reports whether a value is a text. Control characters are none: each would
// take six bytes.
func isText(value []byte) bool {
	return utf8.Valid(value) && !slices.ContainsFunc(value, func(b byte) bool { return b < ' ' && b != '\n' && b != '\t' })
}

// Close lets the next call have the store. What the view has changed counts if its
// event was folded before.
func (v *View) Close() {
	v.s.mu.Lock()
	v.s.bytes -= v.reserved
	v.reserved = 0
	v.s.mu.Unlock()
	<-v.st.viewOpen
}
