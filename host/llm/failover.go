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

// Alternative is a model that can be asked in the place of another one.
type Alternative struct {
	Profile  string // what people call it
	Provider string
	Name     string // of the model
	Model    Model
	// What is known of that model, as of the first.
	ContextTokens int
	Price         *Price
}

// Failover returns a model that asks the first one, and where that fails in the end and
// another may not, the others, one after the other: see [ProviderError.CanFailOver]. Each
// time it yields a delta with Restart, as [Retry] does, that says who is asked instead.
//
// Whoever has answered is asked for the rest of the turn. A request that ends with
// words of a person begins another one, and goes to the first model again.
func Failover(first Model, others []Alternative) Model {
	return &failover{first: first, others: others}
}

type failover struct {
	first  Model
	others []Alternative
	turn   atomic.Int32 // who answers in it: 0 is the first, n is others[n-1]
}

func (f *failover) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		if n := len(req.Messages); n > 0 && req.Messages[n-1].Kind == User && req.Messages[n-1].Data == nil { // no brief
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

// CanFailOver reports whether the same request may succeed at another provider: this one
// is overloaded, was not reached, or takes no more of this account. What is wrong with
// the request, with a key or with a certificate is for a person to see.
func (e *ProviderError) CanFailOver() bool {
	switch {
	case e.Code == ContextExceeded:
		return false
	case e.Retryable, e.Status == http.StatusPaymentRequired, e.Status == http.StatusTooManyRequests, e.Status >= 500:
		return true
	case errors.Is(e.Err, fs.ErrPermission): // by policy
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
