package search_test

import (
	"fmt"

	"github.com/stockade-dev/stockade/sdk/go/search"
)

// Example finds the lines with TODO in two files of the call's directory.
func Example() {
	found, err := search.Lines(search.Query{
		Files:   []string{"/work/main.go", "/work/go.mod"},
		Pattern: `(?i:todo)`, MaxMatches: 100, MaxText: 64 << 10, MaxChars: 200,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range found.Lines {
		fmt.Printf("%d:%d: %s\n", l.File, l.Number, l.Text)
	}
	// Output: search unavailable: the program does not run as a Stockade module
}
