package llm

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
)

// Alternative is a model that is asked if the first model fails.
type Alternative struct {
	Profile  string // name of the profile, for people
	Provider string
	Name     string // name of the model
	Model    Model

	ContextTokens int    // size of the model's context; 0: not known
	Price         *Price // nil: not known
}

// Failover returns a model that asks first. If a model fails and another provider may succeed (see
// [ProviderError.CanFailOver]), it asks the next of others. Before that it yields a delta with
// Restart, like [Retry]; Restart.Alternative is the model that is asked next. If all have failed,
// the error is that of the last model.
//
// The model that has answered gets the remaining requests of the turn. A request that ends with a
// message of a person begins a new turn, and goes to first again.
func Failover(first Model, others []Alternative) Model {
	return &failover{first: first, others: others}
}

type failover struct {
	first  Model
	others []Alternative
	turn   atomic.Int32 // model of the current turn: 0 is first, n is others[n-1]
}

func (f *failover) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		if n := len(req.Messages); n > 0 && req.Messages[n-1].Kind == User && req.Messages[n-1].Data == nil { // a person's message, not a brief
			f.turn.Store(0)
		}
		for at := int(f.turn.Load()); ; at++ {
			f.turn.Store(int32(at))
			model := f.first
			if at > 0 {
				other := f.others[at-1]
				model, req.Model = other.Model, other.Name
			}
			failed := forwardDeltas(ctx, model, req, yield)
			if failed == nil {
				return
			}
			failure, ok := errors.AsType[*ProviderError](failed)
			if !ok || ctx.Err() != nil || !failure.CanFailOver() || at == len(f.others) {
				yield(Delta{}, failed)
				return
			}
			if !yield(Delta{Restart: &Restart{Err: failure, Alternative: &f.others[at]}}, nil) {
				return
			}
		}
	}
}

// CanFailOver reports whether the same request may succeed at another provider. This is so if
// the provider is overloaded, cannot be reached, or takes no more requests of this account. An
// error in the request, the key or a certificate is not hidden: a person has to see it.
func (e *ProviderError) CanFailOver() bool {
	switch {
	case e.Code == ContextExceeded:
		return false
	case e.Retryable, e.Status == http.StatusPaymentRequired, e.Status == http.StatusTooManyRequests, e.Status >= 500:
		return true
	case errors.Is(e.Err, fs.ErrPermission): // denied by policy
		return false
	}
	for _, word := range []string{"quota", "billing", "credit", "overloaded"} {
		if strings.Contains(strings.ToLower(e.Code), word) {
			return true
		}
	}
	op, dial := errors.AsType[*net.OpError](e.Err)
	_, name := errors.AsType[*net.DNSError](e.Err)
	return e.Status == 0 && (dial && op.Op == "dial" || name || errors.Is(e.Err, syscall.EHOSTUNREACH))
}
