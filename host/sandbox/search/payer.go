package search

// Payer is what a search has to do with the account of the guest. Its methods
// are called on the goroutine of the guest.
type Payer interface {
	// Pay takes what the guest has to pay, and says whether it can.
	Pay(units uint64) error
	// Left is what it can pay.
	Left() uint64
	// Yield lets others have their turn. So much is going to be paid.
	Yield(owed uint64) error
	// WithoutTurn waits, while others have the turn.
	WithoutTurn(wait func())
}
