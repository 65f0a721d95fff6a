package meter

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
)

// owing returns an account whose guest owes units.
func owing(budget uint64, units int64, shared ...*policy.Budget) *Account {
	a := New(context.Background(), budget, 1000, shared...)
	counter := -units
	a.counter = func() int64 { return counter }
	a.setCounter = func(v int64) { counter = v }
	return a
}

// One large operation can cost more than a call has. The session pays for the work, however
// many calls do it.
func TestSharedBudgetsPayForWhatWasDone(t *testing.T) {
	const cost = 8_000_000
	session := policy.NewBudget("session", 10_000_000, 0)
	for i, left := range []uint64{2_000_000, 0, 0} {
		a := owing(1000, cost, session)
		if err := a.Settle(); !errors.Is(err, ErrExhausted) {
			t.Errorf("call %d: %v", i, err)
		}
		if a.ExhaustedBudget().Key() != CallFuelKey || a.Used() != cost {
			t.Errorf("call %d: used %d, empty is %s", i, a.Used(), a.ExhaustedBudget().Key())
		}
		a.Close()
		if session.Left() != left {
			t.Errorf("call %d: the session has %d left, want %d", i, session.Left(), left)
		}
	}
}

func TestGrant(t *testing.T) {
	for _, c := range []struct {
		name               string
		own, tool, session uint64
		owed               int64
		counter            int64 // afterwards
		ownLeft, toolLeft  uint64
		sessionLeft        uint64
		empty              string
	}{
		{"a slice", 5000, 5000, 5000, 10, 990, 4000, 4000, 4000, ""},
		{"more than a slice", 5000, 5000, 5000, 2000, 0, 3000, 3000, 3000, ""},
		{"less than a slice is left", 5000, 300, 5000, 10, 290, 4700, 0, 4700, ""},
		{"just what is owed", 5000, 10, 5000, 10, 0, 4990, 0, 4990, ""},
		{"the tool has too little", 5000, 9, 5000, 10, 0, 4990, 0, 4990, "tool"},
		{"the session has too little", 5000, 5000, 9, 10, 0, 4990, 4990, 0, "session"},
		{"all have too little", 1, 2, 3, 10, 0, 0, 0, 0, CallFuelKey},
	} {
		tool, session := policy.NewBudget("tool", c.tool, 0), policy.NewBudget("session", c.session, 0)
		a := owing(c.own, c.owed, tool, session)
		err := a.Settle()
		if got := a.ExhaustedBudget(); (got == nil) != (c.empty == "") || got != nil && got.Key() != c.empty || errors.Is(err, ErrExhausted) != (c.empty != "") {
			t.Errorf("%s: %v, empty is %v", c.name, err, got)
		}
		if a.counter() != c.counter || a.Used() != uint64(c.owed) {
			t.Errorf("%s: the counter is %d, %d used", c.name, a.counter(), a.Used())
		}
		if own := a.budgets[0].Left(); own != c.ownLeft || tool.Left() != c.toolLeft || session.Left() != c.sessionLeft {
			t.Errorf("%s: %d, %d and %d are left", c.name, own, tool.Left(), session.Left())
		}
	}
}

// A guest that returns too late counts as stopped.
func TestSettleLooksAtTheTime(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	a := New(ctx, math.MaxInt64, 0)
	counter := int64(5)
	a.counter, a.setCounter = func() int64 { return counter }, func(v int64) { counter = v }
	if err := a.Settle(); err != nil {
		t.Error(err)
	}
	cancel()
	if err := a.Settle(); !errors.Is(err, context.Canceled) {
		t.Errorf("after the cancel: %v", err)
	}
}

// A guest that is stopped at its deadline pays for the fuel that it has used.
func TestWhoIsStoppedPaysWhatItOwes(t *testing.T) {
	session := policy.NewBudget("session", 10_000_000, 0)
	ctx, cancel := context.WithCancel(context.Background())
	a := owing(5_000_000, 3_000_000, session)
	a.ctx = ctx
	cancel()
	if err := a.Settle(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for range 2 { // twice is once
		a.Close()
		if session.Left() != 7_000_000 || a.budgets[0].Left() != 2_000_000 || a.Used() != 3_000_000 {
			t.Errorf("the session has %d left, the call %d, it has used %d", session.Left(), a.budgets[0].Left(), a.Used())
		}
	}
}

func TestLeftIsWhatTheLeastBudgetHas(t *testing.T) {
	session := policy.NewBudget("session", 700, 0)
	a := owing(5000, -30, session)
	if got := a.Left(); got != 730 {
		t.Errorf("%d are left", got)
	}
	if err := a.Exhaust(); !errors.Is(err, ErrExhausted) || a.ExhaustedBudget() != session {
		t.Errorf("%v, empty is %v", err, a.ExhaustedBudget())
	}
}
