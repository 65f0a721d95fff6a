package bench

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"
)

// Figure is a measured number with its target.
type Figure struct {
	Name     string
	Measured float64
	P10      *float64 `json:",omitempty"` // 10th percentile of the measurements
	AtMost   float64  // the target
	AtLeast  float64  `json:",omitempty"` // the target, if more is better
	NoTarget bool     `json:",omitempty"`
	Missing  bool     `json:",omitempty"` // it was not measured; Note has the reason
	Unit     string
	Note     string `json:",omitempty"`
}

// The units with their own number of digits.
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

// PrintFigures writes the figures with their targets.
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

// Table returns a writer that aligns columns, which end with tabs.
func Table(w io.Writer, flags uint) *tabwriter.Writer {
	return tabwriter.NewWriter(w, 0, 0, 2, ' ', flags)
}

// Round rounds to three digits, as in the output.
func Round(x float64) float64 { return math.Round(x*1000) / 1000 }

// digits formats a number with enough digits to compare it with the target.
func digits(x float64, unit string) string {
	switch unit {
	case Ratio:
		return strconv.FormatFloat(x, 'f', 3, 64)
	case Runs, KiB:
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'f', 1, 64)
}
