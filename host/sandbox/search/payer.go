package search

import "math"

// Payer is what a search has to do with the account of the guest. Its methods
// are called on the goroutine of the guest.
type Payer interface {
	// Pay takes what the guest has to pay, and says whether it can.
	Pay(units uint64) error
	// Left is what it can pay.
	Left() uint64
	// Yield lets others have their turn. So much is going to be paid.
	Yield(owed uint64) error
	// Away waits, while others have the turn.
	Away(wait func())
}

// Free is the account of who does not pay.
type Free struct{}

// Pay takes nothing.
func (Free) Pay(uint64) error { return nil }

// Left is without end.
func (Free) Left() uint64 { return math.MaxUint64 }

// Yield does nothing.
func (Free) Yield(uint64) error { return nil }

// Away waits.
func (Free) Away(wait func()) { wait() }
