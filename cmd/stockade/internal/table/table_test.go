package table

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func example() *Table {
	t := New(Fixed("ID"), Text("TITLE"), Path("WHERE"))
	t.Row(1, "fix the tests of the store and then run them again", "/home/somebody/projects/stockade/cmd")
	t.Row(22, "Grüße", "/tmp")
	t.Row(3, "世界 and \x1b[31m", "")
	return t
}

func TestATableFits(t *testing.T) {
	for _, test := range []struct {
		name    string
		columns int
		want    string
	}{
		{"what is no terminal gets whole cells", 0, `
ID  TITLE                                               WHERE
1   fix the tests of the store and then run them again  /home/somebody/projects/stockade/cmd
22  Grüße                                               /tmp
3   世界 and <U+001B>[31m                                 ` + `
`},
		{"a terminal that is narrow breaks texts between words, and paths in their middle", 60, `
ID  TITLE                       WHERE
1   fix the tests of the store  /home/s...cts/stockade/cmd
    and then run them again
22  Grüße                       /tmp
3   世界 and <U+001B>[31m
`},
		{"one that is too narrow shows a list", 24, `
ID     1
TITLE  fix the tests of
       the store and
       then run them
       again
WHERE  /hom...ckade/cmd

ID     22
TITLE  Grüße
WHERE  /tmp

ID     3
TITLE  世界 and
       <U+001B>[31m
`},
	} {
		var b strings.Builder
		if err := example().Write(&b, test.columns); err != nil {
			t.Fatal(err)
		}
		if got := "\n" + b.String(); got != test.want {
			t.Errorf("%s:%s", test.name, got)
		}
	}
}

func TestNoRowIsWiderThanTheTerminal(t *testing.T) {
	for columns := 24; columns < 140; columns++ {
		var b strings.Builder
		if err := example().Write(&b, columns); err != nil {
			t.Fatal(err)
		}
		for row := range strings.Lines(b.String()) {
			if w := ansi.StringWidth(strings.TrimSuffix(row, "\n")); w >= columns {
				t.Errorf("%d columns: %q takes %d", columns, row, w)
			}
		}
	}
}
