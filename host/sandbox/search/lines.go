package search

import (
	"context"
	"errors"
	"time"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/sdk/go/lines"
)

// Limits of a query. A longer or larger pattern is ErrPattern; the other values are lowered to
// the limit.
const (
	MaxPattern = 1 << 10   // bytes
	MaxSteps   = 4096      // instructions of the compiled pattern
	MaxMatches = 1000      // lines with matches
	MaxText    = 256 << 10 // bytes of text after which no match is added
	MaxContext = 20        // lines before and after each match
	MaxChars   = 2000      // characters of each line
)

// Costs of a search, in units of fuel of about a nanosecond.
const (
	costQuery   = 20_000     // for each query
	costSource  = 500        // for each byte of the pattern
	costClass   = 200_000    // for each class of Unicode in the pattern
	costFold    = 15_000_000 // for each range in the pattern that can be large if case is ignored
	costProgram = 500        // for each instruction of the compiled pattern
	costFile    = 1000       // for each file, in addition to opening it
	shiftRead   = 2          // 1<<shiftRead bytes cost one unit for reading, and one for each literal text that is looked for
	costVain    = 20         // for each place that turned out not to match a literal text
	costLine    = 100        // for each line that is matched against the pattern
	costMatch   = 20         // for each byte of such a line
	costStep    = 8          // for each byte of such a line and each instruction of the pattern
)

var (
	// ErrPattern is returned for a pattern that is invalid or too large.
	ErrPattern = errors.New("the pattern is not valid, or too large")
	// ErrSpent is returned if the guest could not pay for the work when the work was done,
	// even if the guest can pay later.
	ErrSpent = errors.New("the search has cost more than there is")
)

// Query describes a search.
type Query struct {
	Files      []string // absolute names of the files, in the order of the search
	Pattern    string   // an RE2 expression
	Context    int      // lines before and after each match
	MaxMatches int      // lines with matches after which the search ends
	MaxText    int      // bytes of text after which no further match is added
	MaxChars   int      // characters of each line that are returned
}

// Found is the result of a search.
type Found struct {
	Lines  []Line
	Text   []byte // all lines, without separators
	Failed int    // number of files that could not be opened or read to the end, or are UTF-16
	More   bool   // there are further matches, which Lines lacks
}

// Line is a line of a file: a match, or its context.
type Line struct {
	Number  uint64 // number of the line in its file, from 1
	File    int    // index in Query.Files
	Size    int    // bytes of the line in Found.Text
	Matches bool   // the line is a match, not context
	Cut     bool   // only a part of the line is in Text
	before  bool   // the line is context before a match
}

// add adds a line. It returns false if the line is a match for which there is no room.
func (f *Found) add(q *Query, l Line, text []byte, matches *int) bool {
	if l.Matches {
		if *matches == q.MaxMatches || len(f.Text) > q.MaxText {
			// The context before the match is removed as well.
			for n := len(f.Lines); n > 0 && f.Lines[n-1].before; n-- {
				f.Text = f.Text[:len(f.Text)-f.Lines[n-1].Size]
				f.Lines = f.Lines[:n-1]
			}
			f.More = true
			return false
		}
		*matches++
	}
	f.Lines = append(f.Lines, l)
	f.Text = append(f.Text, text...)
	return true
}

// prepare checks and compiles a query, and charges for it.
func prepare(ctx context.Context, fs *wasi.FS, q Query, pay Payer) (*run, error) {
	q.Context = clamp(q.Context, MaxContext)
	q.MaxMatches = clamp(q.MaxMatches, MaxMatches)
	q.MaxText = clamp(q.MaxText, MaxText)
	q.MaxChars = clamp(q.MaxChars, MaxChars)
	if len(q.Pattern) > MaxPattern {
		return nil, ErrPattern
	}
	if err := pay.Pay(costQuery + costSource*uint64(len(q.Pattern)) + parseCost(q.Pattern)); err != nil {
		return nil, err
	}
	p, err := lines.Compile(q.Pattern, MaxSteps)
	if err != nil {
		return nil, ErrPattern
	}
	if err := pay.Pay(costProgram * p.Steps()); err != nil {
		return nil, err
	}
	return newRun(fs, &q, p, pay, callErrFunc(ctx)), nil
}

func clamp(n, limit int) int { return min(max(n, 0), limit) }

// callErrFunc returns a function that returns the reason why the call is over; nil: it is not.
// The function reads the clock itself, because timers depend on the scheduler.
func callErrFunc(ctx context.Context) func() error {
	deadline, ok := ctx.Deadline()
	return func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if ok && !time.Now().Before(deadline) {
			return context.DeadlineExceeded
		}
		return nil
	}
}

func parseCost(expr string) uint64 {
	classes, folds := lines.Heavy(expr)
	return costClass*uint64(classes) + costFold*uint64(folds)
}
