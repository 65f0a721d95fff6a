package search

import (
	"context"
	"errors"
	"time"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/sdk/go/lines"
)

// The most that a query may ask for. More is as much.
const (
	MaxPattern = 1 << 10 // bytes
	MaxSteps   = 4096    // instructions of the compiled pattern
	MaxMatches = 1000
	MaxText    = 256 << 10 // bytes
	MaxContext = 20
	MaxChars   = 2000
)

// What a search costs, in units of fuel; one is about a nanosecond.
const (
	costQuery   = 20_000     // a query
	costSource  = 500        // a byte of the pattern
	costClass   = 200_000    // a class of Unicode in it
	costFold    = 15_000_000 // a range in it that can be large, where case is ignored
	costProgram = 500        // an instruction that it compiles to
	costFile    = 1000       // a file, beside what it costs to open
	shiftRead   = 2          // so many bytes read, as a power of two, cost one unit for reading, and one for each text looked for
	costVain    = 20         // a place that looks like the text
	costLine    = 100        // a line that is matched,
	costMatch   = 20         // a byte of it,
	costStep    = 8          // and for each instruction of the pattern
)

var (
	// ErrPattern is returned for a pattern that is not valid or too large.
	ErrPattern = errors.New("the pattern is not valid, or too large")
	// ErrSpent is returned when the guest could not pay for what was done,
	// even if it could again when it was to pay.
	ErrSpent = errors.New("the search has cost more than there is")
)

// Query says what to search for, and where.
type Query struct {
	Files      []string // absolute names
	Pattern    string   // an RE2 expression
	Context    int      // lines before and after each match
	MaxMatches int
	MaxText    int // bytes of text after which no other match is taken
	MaxChars   int // of each line
}

// Found is what a search found.
type Found struct {
	Lines  []Line
	Text   []byte // of all lines, without anything between them
	Failed int    // files that could not be opened or read to the end, or of UTF-16
	More   bool   // there are more matches
}

// Line is a line of a file: one that matches, or one beside it.
type Line struct {
	Number  uint64
	File    int // of Query.Files
	Size    int // of its part of Text
	Matches bool
	Cut     bool
	before  bool
}

// add takes a line that is beside a match or a match that there is room for.
func (f *Found) add(q *Query, l Line, text []byte, matches *int) bool {
	if l.Matches {
		if *matches == q.MaxMatches || len(f.Text) > q.MaxText {
			// What stands before it goes with it.
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

// prepare makes a query ready to be carried out.
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

func clamp(n, most int) int { return min(max(n, 0), most) }

// callErrFunc returns a function that says why the call is over, if it is. It looks
// at the clock itself: a timer fires when the scheduler gets to it.
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

// parseCost is what it takes to read an expression, beside costSource.
func parseCost(expr string) uint64 {
	classes, folds := lines.Heavy(expr)
	return costClass*uint64(classes) + costFold*uint64(folds)
}
