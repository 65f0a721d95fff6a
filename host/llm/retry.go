package llm

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"
)

// RetryOptions says how [Retry] retries. The zero value of each field is its default.
type RetryOptions struct {
	Attempts      int           // how often the request is sent at most; 4
	Backoff       time.Duration // the longest first wait, which doubles each time; 1s
	MaxBackoff    time.Duration // where the doubling ends; 30s
	MaxRetryAfter time.Duration // the longest wait that a provider may ask for; 2m

	// Sleep waits for d or until ctx ends. Nil: a timer.
	Sleep func(ctx context.Context, d time.Duration)
	// Rand returns a number in [0, 1). Nil: math/rand/v2.
	Rand func() float64
}

// Retry returns a model that sends a request again after a [ProviderError]
// that is Retryable: after the time that the provider asks for, else after a
// random part of a wait that doubles ("full jitter").
//
// Before each wait it yields a delta with Restart: a copy of the error whose
// RetryAfter is the wait, so that an interface can show "retrying in 2s". It
// does so whether or not the attempt had yielded anything.
//
// A provider that asks for more than MaxRetryAfter is not asked again: to come
// back sooner than it said would only fail once more. Other errors, and the
// error of the last attempt, are passed on as they are. When ctx ends, the
// error is ctx's cause.
func Retry(model Model, opts *RetryOptions) Model {
	r := &retrier{model: model}
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.Attempts <= 0 {
		r.opts.Attempts = 4
	}
	if r.opts.Backoff <= 0 {
		r.opts.Backoff = time.Second
	}
	if r.opts.MaxBackoff <= 0 {
		r.opts.MaxBackoff = 30 * time.Second
	}
	if r.opts.MaxRetryAfter <= 0 {
		r.opts.MaxRetryAfter = 2 * time.Minute
	}
	if r.opts.Sleep == nil {
		r.opts.Sleep = sleep
	}
	if r.opts.Rand == nil {
		r.opts.Rand = rand.Float64
	}
	return r
}

type retrier struct {
	model Model
	opts  RetryOptions // fixed at creation
}

func (r *retrier) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		for attempt := 1; ; attempt++ {
			err, stopped := attemptOnce(r.model.Stream(ctx, req), yield)
			if stopped || err == nil {
				return
			}
			if ctx.Err() != nil {
				yield(Delta{}, context.Cause(ctx))
				return
			}
			failure, ok := errors.AsType[*ProviderError](err)
			if !ok || !failure.Retryable || attempt >= r.opts.Attempts || failure.RetryAfter > r.opts.MaxRetryAfter {
				yield(Delta{}, err)
				return
			}
			restart := *failure
			restart.RetryAfter = r.wait(failure, attempt)
			if !yield(Delta{Restart: &restart}, nil) {
				return
			}
			r.opts.Sleep(ctx, restart.RetryAfter)
			if ctx.Err() != nil {
				yield(Delta{}, context.Cause(ctx))
				return
			}
		}
	}
}

// attemptOnce passes an attempt's deltas on, but not its error.
func attemptOnce(deltas iter.Seq2[Delta, error], yield func(Delta, error) bool) (err error, stopped bool) {
	for d, err := range deltas {
		if err != nil {
			return err, false
		}
		if !yield(d, nil) {
			return nil, true
		}
	}
	return nil, false
}

// wait is the time before the attempt after the given one.
func (r *retrier) wait(failure *ProviderError, attempt int) time.Duration {
	if failure.RetryAfter > 0 {
		return failure.RetryAfter
	}
	ceiling := r.opts.Backoff
	for i := 1; i < attempt && ceiling < r.opts.MaxBackoff; i++ {
		ceiling *= 2
	}
	return time.Duration(r.opts.Rand() * float64(min(ceiling, r.opts.MaxBackoff)))
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
