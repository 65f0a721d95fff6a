// Package meter implements the fuel account of a call. It grants fuel to a guest in slices,
// charges the guest for work of the host, and ends it when its budget is used up, when its
// time is up, or when its result is no longer wanted.
//
// Package fuel puts the counter into the guest's code. When the counter falls below zero, the
// guest calls the host function refill, which finds the account in the context of the call.
// Only there can a guest be stopped, only there do other guests get their [Turns], and only
// there does Go's garbage collector get hold of the guest's thread.
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

// DefaultSlice is the fuel that a guest gets at a time. It lasts for some tens of
// microseconds, and for 4 ms with the slowest mix of instructions. So long the garbage
// collector has to wait.
const DefaultSlice = 125_000

var (
	ErrExhausted = errors.New("out of fuel")                 // error of a guest that has used up a budget
	ErrDepth     = errors.New("calls are nested too deeply") // error of a guest with calls that are nested too deeply
)

// Account is the fuel account of one instance. One goroutine uses it; other goroutines may
// call Used.
type Account struct {
	ctx        context.Context
	deadline   time.Time        // zero: none
	slice      uint64           // units that the guest gets at a time
	budgets    []*policy.Budget // budgets that pay, the budget of the call first
	granted    uint64           // units that the guest has got so far
	exhausted  *policy.Budget   // budget that is used up; nil: none is
	counter    func() int64     // reads the guest's counter
	setCounter func(int64)      // writes the guest's counter
	turns      *Turns           // nil: the guest need not wait for turns

	// The fields below are for Turns.
	base       uint64 // units that count as used in addition to those that were used
	usedAtTurn uint64 // units that counted as used when the guest got its turn
}

// CallFuelKey is the name of the setting with the limit of a call.
const CallFuelKey = "tool_fuel"

// New returns an account with a budget in units of fuel. The account stops its guest when ctx
// ends. The shared budgets also pay for all of the fuel. A slice of 0 means [DefaultSlice].
func New(ctx context.Context, budget, slice uint64, shared ...*policy.Budget) *Account {
	if slice == 0 {
		slice = DefaultSlice
	}
	// The budget must leave room below zero: the counter is signed, and the cost of a bulk
	// operation is subtracted in one step.
	own := policy.NewBudget(CallFuelKey, min(budget, math.MaxInt64/4), 0)
	a := &Account{ctx: ctx, slice: min(slice, math.MaxInt64/4), budgets: append([]*policy.Budget{own}, shared...)}
	a.deadline, _ = ctx.Deadline()
	return a
}

// UseTurns makes the guest wait for its turn in t.
func (a *Account) UseTurns(t *Turns) { a.turns = t }

// Attach connects the account to an instance that has not run yet. It fails if the module is
// not instrumented.
func (a *Account) Attach(mod api.Module) error {
	counter, ok := mod.ExportedGlobal(fuel.ExportFuel).(api.MutableGlobal)
	if !ok {
		return fmt.Errorf("the module exports no counter %q: it is not instrumented", fuel.ExportFuel)
	}
	a.counter = func() int64 { return int64(counter.Get()) }
	a.setCounter = func(v int64) { counter.Set(uint64(v)) }
	return nil
}

// Used returns the units of fuel that were used so far. The number is exact while the guest
// does not run: before and after a call, after a trap, and inside a host function.
func (a *Account) Used() uint64 {
	if a.counter == nil {
		return 0
	}
	// The counter can be below zero: fuel that was used since the last check is owed.
	return uint64(int64(a.granted) - a.counter())
}

// Charge charges the guest for the work of a host function. Only host functions may call it.
// If the guest has to stop, it stops when the function returns.
func (a *Account) Charge(units uint64) {
	if a.counter != nil {
		a.setCounter(a.counter() - int64(min(units, math.MaxInt64/4)))
	}
}

// Settle charges the fuel that was used since the last check. The error means that the guest
// had to stop. Call it when the guest has returned.
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

// Left returns the units of fuel that the guest can still use.
func (a *Account) Left() uint64 {
	_, least := a.tightestBudget()
	if a.counter != nil {
		least += uint64(max(a.counter(), 0))
	}
	return least
}

// tightestBudget returns the budget with the least fuel left, and that fuel.
func (a *Account) tightestBudget() (*policy.Budget, uint64) {
	budget, least := a.budgets[0], a.budgets[0].Left()
	for _, b := range a.budgets[1:] {
		if left := b.Left(); left < least {
			budget, least = b, left
		}
	}
	return budget, least
}

// Exhaust marks the tightest budget as used up and returns ErrExhausted, for a guest that
// cannot pay for work of the host, even if its budgets have got fuel back meanwhile.
func (a *Account) Exhaust() error {
	if a.exhausted == nil {
		a.exhausted, _ = a.tightestBudget()
	}
	return ErrExhausted
}

// Yield lets other guests run during a host function that uses the processor for long. owed
// is the fuel for its work so far that was not charged yet. The error means that the guest
// has to stop.
func (a *Account) Yield(owed uint64) error { return a.yield(a.Used() + owed) }

func (a *Account) yield(used uint64) error {
	if err := a.Check(); err != nil || a.turns == nil {
		return err
	}
	if err := a.turns.acquire(a.ctx, a, used); err != nil {
		return err
	}
	return a.Check() // waiting may have taken long
}

// ExhaustedBudget returns the budget that ended the guest; nil: none did.
func (a *Account) ExhaustedBudget() *policy.Budget { return a.exhausted }

// ReleaseTurn ends the turn of the guest, if it has one. Call it when the guest does not run
// for a while. Before the guest continues, it waits for a turn.
func (a *Account) ReleaseTurn() {
	if a.turns != nil {
		a.turns.release(a)
	}
}

// WithoutTurn calls wait, inside a host function, while other guests have the turn. wait must
// not use the processor.
func (a *Account) WithoutTurn(wait func()) {
	a.ReleaseTurn()
	wait()
	if a.turns != nil {
		// The guest learns about an error at its next check.
		_ = a.turns.acquire(a.ctx, a, a.Used())
	}
}

// Close returns unused fuel to the budgets, and charges fuel that the guest owes: a guest that
// was stopped has used fuel since the last check. The guest must not run again.
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
	a.granted -= uint64(left) // granted grows if fuel was owed
	a.setCounter(0)
}

// Check returns the reason why the guest has to stop, or nil.
func (a *Account) Check() error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	// A timer fires when the scheduler gets to it, and guests on every processor can delay
	// that.
	if !a.deadline.IsZero() && !time.Now().Before(a.deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// grant adds a slice to the counter, whose value is left, or more if more is owed (left is
// negative). It returns the new value. If a budget has less than the debt it is emptied and
// becomes exhausted; the others pay the whole debt, so that many calls together cannot owe one
// of them more and more.
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

// From returns the account of the call; nil: there is none.
func From(ctx context.Context) *Account {
	a, _ := ctx.Value(accountKey{}).(*Account)
	return a
}

// Instantiate registers the host module with the function refill in a runtime, for all its
// instances. refill uses the account in the context of each call.
func Instantiate(ctx context.Context, rt wazero.Runtime) error {
	_, err := rt.NewHostModuleBuilder(fuel.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(refill), []api.ValueType{api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64}).
		Export(fuel.ImportRefill).
		Instantiate(ctx)
	return err
}

// refill is called by a guest whose counter is below zero, or with calls that are nested too
// deeply. It returns the new value of the counter.
func refill(ctx context.Context, _ api.Module, stack []uint64) {
	a := From(ctx)
	if a == nil {
		panic(errors.New("the guest runs without an account"))
	}
	left := int64(stack[0])
	if left >= 0 {
		panic(ErrDepth) // the function was not charged yet
	}
	err := a.yield(uint64(int64(a.granted) - left))
	if err == nil {
		left, err = a.grant(left)
	}
	if err != nil {
		a.setCounter(left) // the guest's own value is in a register
		panic(err)
	}
	stack[0] = uint64(left)
}
