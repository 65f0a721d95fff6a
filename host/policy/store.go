package policy

import (
	"errors"
	"fmt"
)

// The keys of agent.toml for the sizes of stores, in bytes.
const (
	StoreKey        = "tool_store"
	SessionStoreKey = "session_store"
)

// Limits of a store, besides those in [Limits]. Beyond each of them a guest's value is not
// stored. Set itself checks only MaxStoreKeys; the sandbox checks the lengths.
const (
	MaxStoreKeys       = 1000
	MaxStoreKeyBytes   = 256      // length of a key
	MaxStoreValueBytes = 64 << 10 // length of a value
)

// Store holds the data that the tools of one module store in a session, as one call sees it.
// Changes by the call become visible to other calls once the call has succeeded.
type Store interface {
	// Get returns the value of a key. ok is false if there is none.
	Get(key string) (value []byte, ok bool)
	// Set stores a value, for *life milliseconds if life is not nil. The error is a
	// *StoreFullError, ErrTooManyKeys or ErrStoreExhausted; then nothing has changed.
	Set(key string, value []byte, life *uint64) error
	Delete(key string)
	// Keys returns the first keys with a prefix, sorted, at most limit.
	Keys(prefix string, limit int) []string
}

// StoreFullError is the error for a value that no longer fits into its store, or into the
// stores of the session together. Limit is their size in bytes.
type StoreFullError struct{ Limit int }

func (e *StoreFullError) Error() string { return fmt.Sprintf("the store may hold %d bytes", e.Limit) }

var (
	// ErrTooManyKeys is returned when a store holds [MaxStoreKeys] keys and would get another.
	ErrTooManyKeys = fmt.Errorf("the store holds %d keys, and no more", MaxStoreKeys)
	// ErrStoreExhausted is returned when the session's log holds as much of its stores'
	// changes as it may.
	ErrStoreExhausted = errors.New("this session's record of stored data is full; begin a new session")
)

// WithStore returns the grant for a call that uses this view of its module's store.
func (g Grant) WithStore(s Store) Grant {
	g.store = s
	return g
}

// HasStore reports whether the call may use a store.
func (g Grant) HasStore() bool { return g.terms().hasStore }

// Store returns the store of the call; nil: it may not use one, or [Grant.WithStore] gave
// none.
func (g Grant) Store() Store {
	if !g.HasStore() {
		return nil
	}
	return g.store
}
