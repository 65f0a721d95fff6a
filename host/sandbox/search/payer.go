package search

// Payer is the account of the guest for a search. The guest's goroutine calls its methods.
type Payer interface {
	// Pay charges units of fuel. The error means that the guest has to stop.
	Pay(units uint64) error
	// Left returns the units of fuel that the guest can still pay.
	Left() uint64
	// Yield lets other guests have their turn. owed is the fuel that will be charged later.
	// The error means that the guest has to stop.
	Yield(owed uint64) error
	// WithoutTurn calls wait, while other guests have the turn.
	WithoutTurn(wait func())
}
