package llm

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// attempts is a model whose n-th request yields the n-th list: deltas, then an
// error if the last element is one.
type attempts struct {
	answers [][]any
	calls   int
}

func (m *attempts) Stream(context.Context, Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		answer := m.answers[min(m.calls, len(m.answers)-1)]
		m.calls++
		for _, v := range answer {
			switch v := v.(type) {
			case string:
				if !yield(Delta{Text: v}, nil) {
					return
				}
			case error:
				yield(Delta{}, v)
				return
			}
		}
		yield(Delta{Finish: FinishStop}, nil)
	}
}

func busy(after time.Duration) error {
	return &ProviderError{Provider: "test", Message: "busy", Retryable: true, RetryAfter: after}
}

// trace runs a stream and writes down each event with its time in the bubble.
func trace(ctx context.Context, model Model) (lines []string) {
	start := time.Now()
	say := func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%v ", time.Since(start))+fmt.Sprintf(format, args...))
	}
	for d, err := range model.Stream(ctx, Request{}) {
		switch {
		case err != nil:
			say("error %v", err)
		case d.Restart != nil:
			say("restart in %v, %d of %d: %s", d.Restart.Wait, d.Restart.Attempt, d.Restart.Attempts, d.Restart.Err.Message)
		case d.Finish != "":
			say("finish")
		default:
			say("text %s", d.Text)
		}
	}
	return lines
}

func TestRetrySendsARequestAgain(t *testing.T) {
	denied := &ProviderError{Provider: "test", Message: "denied"}
	tests := []struct {
		name    string
		answers [][]any
		want    []string
	}{{
		name:    "an answer at once is passed on",
		answers: [][]any{{"a", "b"}},
		want:    []string{"0s text a", "0s text b", "0s finish"},
	}, {
		name:    "the wait doubles up to its end, and the last error is passed on",
		answers: [][]any{{busy(0)}},
		want: []string{
			"0s restart in 500ms, 2 of 8: busy", "500ms restart in 1s, 3 of 8: busy", "1.5s restart in 2s, 4 of 8: busy", "3.5s restart in 4s, 5 of 8: busy",
			"7.5s restart in 8s, 6 of 8: busy", "15.5s restart in 15s, 7 of 8: busy", "30.5s restart in 15s, 8 of 8: busy", "45.5s error test: busy",
		},
	}, {
		name:    "what the provider asks for is waited",
		answers: [][]any{{busy(7 * time.Second)}, {"a"}},
		want:    []string{"0s restart in 7s, 2 of 8: busy", "7s text a", "7s finish"},
	}, {
		name:    "a provider that asks for too long is not asked again",
		answers: [][]any{{busy(time.Hour)}, {"a"}},
		want:    []string{"0s error test: busy"},
	}, {
		name:    "an error after half an answer restarts it",
		answers: [][]any{{"half", busy(0)}, {"whole"}},
		want:    []string{"0s text half", "0s restart in 500ms, 2 of 8: busy", "500ms text whole", "500ms finish"},
	}, {
		name:    "what is not retryable is passed on",
		answers: [][]any{{"half", denied}, {"a"}},
		want:    []string{"0s text half", "0s error test: denied"},
	}, {
		name:    "an error that is not the provider's is passed on",
		answers: [][]any{{errors.New("a bug")}, {"a"}},
		want:    []string{"0s error a bug"},
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := trace(t.Context(), &retrier{&attempts{answers: tt.answers}, 8, func() float64 { return 0.5 }})
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestRetryWaitsARandomTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		model := &attempts{answers: [][]any{{busy(0)}}}
		trace(t.Context(), Retry(model, 4))
		if took := time.Since(start); took <= 0 || took >= 7*time.Second {
			t.Errorf("three waits took %v, want less than 1s + 2s + 4s", took)
		}
		if model.calls != 4 {
			t.Errorf("sent %d times, want 4", model.calls)
		}
	})
}

func TestRetryStopsWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the user pressed Ctrl-C")
		time.AfterFunc(2*time.Second, func() { cancel(cause) })
		model := &attempts{answers: [][]any{{busy(10 * time.Second)}, {"a"}}}
		want := []string{"0s restart in 10s, 2 of 4: busy", "2s error the user pressed Ctrl-C"}
		if diff := cmp.Diff(want, trace(ctx, Retry(model, 4))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if model.calls != 1 {
			t.Errorf("sent %d times, want once", model.calls)
		}

		// A failure that the end of the context brought about is reported as that end.
		want = []string{"0s error the user pressed Ctrl-C"}
		if diff := cmp.Diff(want, trace(ctx, Retry(&attempts{answers: [][]any{{busy(0)}}}, 4))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestRetryStopsWithItsConsumer(t *testing.T) {
	for _, stopAt := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			model := &attempts{answers: [][]any{{"half", busy(time.Second)}, {"a"}}}
			n := 0
			for range Retry(model, 4).Stream(t.Context(), Request{}) {
				if n++; n == stopAt {
					break
				}
			}
			if took := time.Since(start); model.calls != 1 || took != 0 {
				t.Errorf("stopped at piece %d: sent %d times, waited %v", stopAt, model.calls, took)
			}
		})
	}
}
