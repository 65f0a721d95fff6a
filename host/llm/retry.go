package llm

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"
)

const (
	backoff       = time.Second      // greatest first wait; doubles with each attempt
	maxBackoff    = 30 * time.Second // limit of the doubling
	maxRetryAfter = 2 * time.Minute  // longest wait that a provider may ask for; beyond it, Retry gives up
)

// Retry returns a model that sends a request at most the given number of times. After a
// [ProviderError] that is Retryable, it waits and sends the request again. The wait is as long
// as the provider asks for, or else a random part of a limit that doubles ("full jitter").
//
// At the beginning of each wait it yields a delta with Restart, so that an interface can show
// "next try in 2 s, 2 of 4". It does so even if the failed attempt has yielded nothing.
//
// If the provider asks for more than two minutes, Retry gives up: an earlier attempt would only
// fail again. Other errors, and the error of the last attempt, are passed on unchanged. When ctx
// ends, the error is ctx's cause.
func Retry(model Model, attempts int) Model { return &retrier{model, attempts, rand.Float64} }

type retrier struct {
	model    Model
	attempts int
	rand     func() float64 // returns a random number in [0, 1)
}

func (r *retrier) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		for attempt := 1; ; attempt++ {
			failed := forwardDeltas(ctx, r.model, req, yield)
			if failed == nil {
				return
			}
			if ctx.Err() != nil {
				yield(Delta{}, context.Cause(ctx))
				return
			}
			failure, ok := errors.AsType[*ProviderError](failed)
			if !ok || !failure.Retryable || attempt >= r.attempts || failure.RetryAfter > maxRetryAfter {
				yield(Delta{}, failed)
				return
			}
			restart := Restart{Err: failure, Wait: r.wait(failure, attempt), Attempt: attempt + 1, Attempts: r.attempts}
			if !yield(Delta{Restart: &restart}, nil) {
				return
			}
			select {
			case <-time.After(restart.Wait):
			case <-ctx.Done():
				yield(Delta{}, context.Cause(ctx))
				return
			}
		}
	}
}

// forwardDeltas yields the deltas of a model and returns its error. Nil: the answer is complete,
// or the consumer has stopped.
func forwardDeltas(ctx context.Context, model Model, req Request, yield func(Delta, error) bool) error {
	for d, err := range model.Stream(ctx, req) {
		if err != nil {
			return err
		}
		if !yield(d, nil) {
			return nil
		}
	}
	return nil
}

// wait returns the time to wait after the failure of the attempt with the given number, from 1.
func (r *retrier) wait(failure *ProviderError, attempt int) time.Duration {
	if failure.RetryAfter > 0 {
		return failure.RetryAfter
	}
	ceiling := backoff
	for i := 1; i < attempt && ceiling < maxBackoff; i++ {
		ceiling *= 2
	}
	return time.Duration(r.rand() * float64(min(ceiling, maxBackoff)))
}
