package policy

import (
	"errors"
	"fmt"
)

// The keys of agent.toml that bound what tools keep.
const (
	StoreKey        = "tool_store"
	SessionStoreKey = "session_store"
)

// What a store may hold beside the bytes that [Limits] has.
const (
	MaxStoreKeys       = 1000
	MaxStoreKeyBytes   = 256
	MaxStoreValueBytes = 64 << 10
)

// Store is what the tools of a module keep in a session, as one call sees it: with what
// that call has changed, which nobody else sees until the call has succeeded.
type Store interface {
	Get(key string) (value []byte, ok bool)
	// Set keeps a value, for so many milliseconds if life is not nil. The error is a
	// *StoreFullError, ErrTooManyKeys or ErrStoreWorn, and then nothing has changed.
	Set(key string, value []byte, life *uint64) error
	Delete(key string)
	// Keys lists the first keys with a prefix, sorted.
	Keys(prefix string, limit int) []string
}

// StoreFullError says that a value does not fit into a store any more.
type StoreFullError struct{ Limit int } // bytes

func (e *StoreFullError) Error() string { return fmt.Sprintf("the store may hold %d bytes", e.Limit) }

var (
	// ErrTooManyKeys is the error of a store that holds as many keys as it may.
	ErrTooManyKeys = fmt.Errorf("the store holds %d keys, and no more", MaxStoreKeys)
	// ErrStoreExhausted is the error of a store whose session has recorded as much of what
	// tools keep as it does.
	ErrStoreExhausted = errors.New("this session has recorded as much of what tools keep as it does; a new session can go on")
)

// WithStore returns the grant for a call that has this view of the store of its module.
func (g Grant) WithStore(s Store) Grant {
	g.store = s
	return g
}

// HasStore reports whether the grant allows a store.
func (g Grant) HasStore() bool { return g.terms().hasStore }

// Store is what the call keeps; nil: it may keep nothing.
func (g Grant) Store() Store {
	if !g.HasStore() {
		return nil
	}
	return g.store
}
