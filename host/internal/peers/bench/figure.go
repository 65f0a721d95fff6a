package bench

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"
)

// Figure is one of the numbers that there is a target for, or none. Without
// any measurement it says so.
type Figure struct {
	Name     string
	Measured float64
	P10      *float64 `json:",omitempty"` // that a tenth of what was measured is below of
	AtMost   float64  // the target
	AtLeast  float64  `json:",omitempty"` // the target, where more is better
	NoTarget bool     `json:",omitempty"`
	Missing  bool     `json:",omitempty"` // it was not measured, Note says why
	Unit     string
	Note     string `json:",omitempty"`
}

// The units that have digits of their own.
const (
	Ratio  = "x"
	Millis = "ms"
	Micros = "us"
	Runs   = "runs"
	KiB    = "KiB"
)

func (f Figure) verdict() string {
	switch {
	case f.NoTarget, f.Missing:
		return ""
	case f.AtLeast > 0 && f.Measured >= f.AtLeast, f.AtLeast == 0 && f.Measured <= f.AtMost:
		return "PASS"
	case f.AtLeast > 0:
		return "under"
	}
	return "over"
}

func (f Figure) target() string {
	switch {
	case f.NoTarget:
		return ""
	case f.AtLeast > 0:
		return ">= " + digits(f.AtLeast, f.Unit)
	}
	return "<= " + digits(f.AtMost, f.Unit)
}

func (f Figure) measured() string {
	if f.Missing {
		return "-"
	}
	return digits(f.Measured, f.Unit)
}

// PrintFigures writes the figures next to their targets.
func PrintFigures(w io.Writer, figures []Figure) {
	fmt.Fprintln(w, "Against the targets")
	p10 := false
	for _, f := range figures {
		p10 = p10 || f.P10 != nil
	}
	t := Table(w, 0)
	if p10 {
		fmt.Fprint(t, "\tmedian\tp10\t\t\t\t\n")
	}
	for _, f := range figures {
		fmt.Fprintf(t, "%s\t%s\t", f.Name, f.measured())
		if p10 {
			lowest := ""
			if f.P10 != nil {
				lowest = digits(*f.P10, f.Unit)
			}
			fmt.Fprintf(t, "%s\t", lowest)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", f.target(), f.Unit, f.verdict(), f.Note)
	}
	t.Flush()
}

// Table aligns columns that tabs end.
func Table(w io.Writer, flags uint) *tabwriter.Writer {
	return tabwriter.NewWriter(w, 0, 0, 2, ' ', flags)
}

// Round leaves three digits, as they are printed.
func Round(x float64) float64 { return math.Round(x*1000) / 1000 }

// digits are enough to compare with the target by.
func digits(x float64, unit string) string {
	switch unit {
	case Ratio:
		return strconv.FormatFloat(x, 'f', 3, 64)
	case Runs, KiB:
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'f', 1, 64)
}
