// Package meter is the fuel account of a call: it grants a guest fuel in
// slices, charges it for what the host does on its behalf, and ends it when
// the budget is used up, when time is up, or when nobody wants the result any
// more.
//
// The code that counts is put into the guest by package fuel. Whenever the
// counter falls below zero the guest calls the host function refill, which
// looks at the account in the context of the call. This is the only point at
// which a guest can be stopped, at which others get their [Turns], and the only
// one at which Go's garbage collector gets hold of its thread.
package meter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
)

// DefaultSlice is the fuel that a guest gets at a time. It takes some tens of
// microseconds to run, and 4 ms with the slowest mix of instructions, which is
// how long the garbage collector waits for it.
const DefaultSlice = 125_000

var (
	// ErrExhausted ends a guest whose budget is used up.
	ErrExhausted = errors.New("out of fuel")
	// ErrDepth ends a guest whose calls are nested too deeply.
	ErrDepth = errors.New("calls are nested too deeply")
)

// Account is the fuel of one instance. It is used from one goroutine, except
// for Used.
type Account struct {
	ctx        context.Context
	deadline   time.Time // zero: none
	slice      uint64
	budgets    []*policy.Budget // the call's own one first
	granted    uint64           // all in all
	exhausted  *policy.Budget   // the one that is used up
	counter    func() int64
	setCounter func(int64)
	turns      *Turns // nil: it runs when it wants

	// Of turns:
	base       uint64 // what it counts as having used beside what it has
	usedAtTurn uint64 // what it counted as having used when it got its turn
}

// CallFuelKey is the name of the limit of a call in the configuration.
const CallFuelKey = "tool_fuel"

// New returns an account of budget units that stops its guest when ctx ends.
// Its fuel comes out of the shared budgets too, if there are any. A slice of 0
// means [DefaultSlice].
func New(ctx context.Context, budget, slice uint64, shared ...*policy.Budget) *Account {
	if slice == 0 {
		slice = DefaultSlice
	}
	// The counter is signed and what a bulk operation costs is subtracted in
	// one go, so that the largest budget leaves room below zero.
	own := policy.NewBudget(CallFuelKey, min(budget, math.MaxInt64/4), 0)
	a := &Account{ctx: ctx, slice: min(slice, math.MaxInt64/4), budgets: append([]*policy.Budget{own}, shared...)}
	a.deadline, _ = ctx.Deadline()
	return a
}

// UseTurns makes the guest run only when it is its turn.
func (a *Account) UseTurns(t *Turns) { a.turns = t }

// Attach connects the account to an instance that has not run yet.
func (a *Account) Attach(mod api.Module) error {
	counter, ok := mod.ExportedGlobal(fuel.ExportFuel).(api.MutableGlobal)
	if !ok {
		return fmt.Errorf("the module exports no counter %q: it is not instrumented", fuel.ExportFuel)
	}
	a.counter = func() int64 { return int64(counter.Get()) }
	a.setCounter = func(v int64) { counter.Set(uint64(v)) }
	return nil
}

// Used is the fuel that has been consumed, exact whenever the guest does not
// run: before and after a call, after a trap, and inside a host function.
func (a *Account) Used() uint64 {
	if a.counter == nil {
		return 0
	}
	// What is left can be below zero: what was consumed since the last check
	// is owed.
	return uint64(int64(a.granted) - a.counter())
}

// Charge makes the guest pay for what a host function does. It may only be
// called inside one; the guest is stopped, if it has to be, as soon as the
// function has returned.
func (a *Account) Charge(units uint64) {
	if a.counter != nil {
		a.setCounter(a.counter() - int64(min(units, math.MaxInt64/4)))
	}
}

// Settle pays for what was consumed since the last check, and says whether it
// was in time. It is called when the guest has returned.
func (a *Account) Settle() error {
	if err := a.Check(); err != nil {
		return err
	}
	left := a.counter()
	if left >= 0 {
		return nil
	}
	left, err := a.grant(left)
	a.setCounter(left)
	return err
}

// Left is what can still be consumed.
func (a *Account) Left() uint64 {
	_, least := a.tightestBudget()
	if a.counter != nil {
		least += uint64(max(a.counter(), 0))
	}
	return least
}

// tightestBudget is the budget that has the least, and what that is.
func (a *Account) tightestBudget() (*policy.Budget, uint64) {
	budget, least := a.budgets[0], a.budgets[0].Left()
	for _, b := range a.budgets[1:] {
		if left := b.Left(); left < least {
			budget, least = b, left
		}
	}
	return budget, least
}

// Exhaust ends a guest for which more was done than it could pay, whatever has
// been given back to its budgets meanwhile.
func (a *Account) Exhaust() error {
	if a.exhausted == nil {
		a.exhausted, _ = a.tightestBudget()
	}
	return ErrExhausted
}

// Yield lets others have the turn in the middle of a host function that uses
// the processor for long, and says whether the guest has to stop. So much is
// owed for it and not charged yet.
func (a *Account) Yield(owed uint64) error { return a.yield(a.Used() + owed) }

func (a *Account) yield(used uint64) error {
	if err := a.Check(); err != nil || a.turns == nil {
		return err
	}
	if err := a.turns.acquire(a.ctx, a, used); err != nil {
		return err
	}
	return a.Check() // it may have taken long
}

// ExhaustedBudget is the budget that ended the guest, or nil.
func (a *Account) ExhaustedBudget() *policy.Budget { return a.exhausted }

// ReleaseTurn gives the turn of the guest to others, if it has one. It is called when
// the guest does not run for a while; when it runs on it waits for a turn.
func (a *Account) ReleaseTurn() {
	if a.turns != nil {
		a.turns.release(a)
	}
}

// WithoutTurn carries out something inside a host function that does not use the
// processor, while others have the turn.
func (a *Account) WithoutTurn(wait func()) {
	a.ReleaseTurn()
	wait()
	if a.turns != nil {
		// Why it has come to nothing the guest learns at its next check.
		_ = a.turns.acquire(a.ctx, a, a.Used())
	}
}

// Close returns what the guest did not use to the budgets, and takes what it
// owes still: who is stopped because its time is up has used it all the same.
// The guest must not run again.
func (a *Account) Close() {
	a.ReleaseTurn()
	if a.counter == nil {
		return
	}
	left := a.counter()
	for _, b := range a.budgets {
		if left > 0 {
			b.Give(uint64(left))
		} else {
			b.Take(uint64(-left))
		}
	}
	a.granted -= uint64(left) // more if it owes
	a.setCounter(0)
}

// Check returns why the guest has to stop, or nil.
func (a *Account) Check() error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	// A timer fires when the scheduler gets to it, which guests on every
	// processor can delay.
	if !a.deadline.IsZero() && !time.Now().Before(a.deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// grant returns what is left after a slice, or more if more is owed, has been
// added. Of a budget that has less than what is owed all is taken; the others
// pay all of it, so that many calls cannot owe one of them more and more.
func (a *Account) grant(left int64) (int64, error) {
	owed := uint64(-left)
	more := max(a.slice, owed)
	for i, b := range a.budgets {
		got := b.Take(more)
		if got < owed && a.exhausted == nil {
			a.exhausted = b
		}
		got = max(got, owed)
		for _, before := range a.budgets[:i] {
			before.Give(more - got)
		}
		more = got
	}
	a.granted += more
	left += int64(more)
	if a.exhausted != nil {
		return left, ErrExhausted
	}
	return left, nil
}

type accountKey struct{}

// With returns a context for calls into the instance of the account.
func With(ctx context.Context, a *Account) context.Context {
	return context.WithValue(ctx, accountKey{}, a)
}

// From returns the account of the call, or nil.
func From(ctx context.Context) *Account {
	a, _ := ctx.Value(accountKey{}).(*Account)
	return a
}

// Instantiate gives the runtime the host module with refill. The instances of
// one runtime share it; the account comes with each call's context.
func Instantiate(ctx context.Context, rt wazero.Runtime) error {
	_, err := rt.NewHostModuleBuilder(fuel.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(refill), []api.ValueType{api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64}).
		Export(fuel.ImportRefill).
		Instantiate(ctx)
	return err
}

// refill is called by a guest whose counter is below zero, or whose calls are
// nested too deeply. It returns the new value of the counter.
func refill(ctx context.Context, _ api.Module, stack []uint64) {
	a := From(ctx)
	if a == nil {
		panic(errors.New("the guest runs without an account"))
	}
	left := int64(stack[0])
	if left >= 0 {
		panic(ErrDepth) // before the function was charged
	}
	err := a.yield(uint64(int64(a.granted) - left))
	if err == nil {
		left, err = a.grant(left)
	}
	if err != nil {
		a.setCounter(left) // the guest holds it in a register
		panic(err)
	}
	stack[0] = uint64(left)
}
