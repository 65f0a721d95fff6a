//go:build screens

// Package screens looks at the program as a person does: it runs in a terminal of
// tmux's, in a small repository, with a model that says what the scenario wants, and
// what the terminal shows is kept as text and compared.
//
// `make test-screens` runs it, with the build tag screens. testdata/NAME-80x24.txt and
// testdata/NAME-200x50.txt are the screens of a scenario, each under its name;
// UPDATE_SCREENS=1 writes them. What is another one each time (times, ids, versions,
// the frame of a spinner) stands there as a word. PEERS.md is what other programs show
// in the same situations.
package screens

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// prompt matches the row of an empty prompt, promptBegins its beginning.
const prompt = `^> ?(ask, or /help)?$`

var promptBegins = regexp.MustCompile(`(^|[\r\n])> `)

var sizes = []size{{80, 24}, {200, 50}}

var only = flag.String("scenario", "", "run the scenarios whose names match, a regular expression")

// settled is the time for which a screen has to stay the same before it is written to a
// file.
const settled = 700 * time.Millisecond

// changing lists the texts that differ each time, with the words that replace them.
var changing = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`[⠀-⣿]`), "⠿"},
	{regexp.MustCompile(`/tmp/screens[0-9a-f]{6}/`), "/tmp/screens000000/"},
	{regexp.MustCompile(`\b0[0-9a-hjkmnp-tv-z]{19}\b`), "SESSION"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
	{regexp.MustCompile(`\bfrom [0-9a-f]{10} to`), "from COMMIT to"},
	{regexp.MustCompile(`\b\d\d\d\d-\d\d-\d\d \d\d:\d\d(:\d\d)?\b`), "DATE"},
	{regexp.MustCompile(`\b\d+(\.\d+)? (ms|µs|s)\b`), "TIME"},
	{regexp.MustCompile(`\b\d+(\.\d+)? [kMGT] fuel\b`), "FUEL fuel"},
	{regexp.MustCompile(`\b\d+ units of fuel\b`), "FUEL units of fuel"},
	{regexp.MustCompile(`\b\d+(\.\d+)? [KM]iB memory\b`), "SIZE memory"},
	{regexp.MustCompile(`\b(module( +\w+ ·)?) sha256 [0-9a-f]+`), "$1 sha256 DIGEST"},
	// In the context there are results, and in these times.
	{regexp.MustCompile(`[\d,]+ +<?\d+ %( +[#█]+)?`), "SHARE"},
	{regexp.MustCompile(`\d,\d\d\d of (\d)`), "COUNT of $1"},
}

// atTheEnd is a time at the right end of a row. It stays there, whatever its length.
var atTheEnd = regexp.MustCompile(`( {3,})(\d+(?:\.\d+)? (?:ms|µs|s))$`)

// steady writes the words for what is another one each time.
func steady(screen string) string {
	var b strings.Builder
	for row := range strings.Lines(screen) {
		row = strings.TrimSuffix(row, "\n")
		if m := atTheEnd.FindStringSubmatchIndex(row); m != nil {
			row = row[:m[0]] + fmt.Sprintf("%*s", utf8.RuneCountInString(row[m[0]:]), "TIME")
		}
		for _, c := range changing {
			row = c.pattern.ReplaceAllString(row, c.word)
		}
		b.WriteString(row + "\n")
	}
	return b.String()
}

// golden is the file with the screens of a test.
type golden struct {
	path   string
	wanted map[string]string // by name; nil when they are written
	update bool
}

const heading = "=== "

func openGolden(t testing.TB, name string) *golden {
	t.Helper()
	g := &golden{path: filepath.Join("testdata", name+".txt"), wanted: map[string]string{}, update: os.Getenv("UPDATE_SCREENS") != ""}
	text, err := os.ReadFile(g.path)
	if err != nil && !g.update {
		t.Fatalf("%v: UPDATE_SCREENS=1 writes it", err)
	}
	name = ""
	for line := range strings.Lines(string(text)) {
		if after, ok := strings.CutPrefix(line, heading); ok {
			name = strings.TrimSpace(after)
			continue
		}
		g.wanted[name] += line
	}
	return g
}

// sees returns the screen as a person sees it: as many rows as the terminal has, without
// the empty ones at the end. The position of the last row depends on the height of the
// moving part.
func (s *screen) sees() string {
	s.t.Helper()
	rows := strings.SplitAfter(steady(s.capture("-S", fmt.Sprint(-s.size.rows))), "\n")
	return strings.Join(rows[max(len(rows)-s.size.rows, 0):], "")
}

// compares waits until the screen is that of the file, which has it under a name.
func (s *screen) compares(g *golden, name string) {
	s.t.Helper()
	text := ""
	if g.update {
		s.settles()
		text = s.sees()
	} else if want := g.wanted[name]; !poll(s.t, func() bool { text = s.sees(); return text == want }) {
		s.t.Errorf("%s: the screen %q is another one (-want +got):\n%s", g.path, name, cmp.Diff(strings.Split(want, "\n"), strings.Split(text, "\n")))
	}
	s.shown = append(s.shown, shown{name, text})
}

// keeps writes the file, or sees that all of its screens were shown.
func (s *screen) keeps(g *golden) {
	s.t.Helper()
	if !g.update {
		for _, seen := range s.shown {
			delete(g.wanted, seen.name)
		}
		for name := range g.wanted {
			s.t.Errorf("%s: the screen %q was not shown", g.path, name)
		}
		return
	}
	var b strings.Builder
	for _, seen := range s.shown {
		fmt.Fprintf(&b, "%s%s\n%s", heading, seen.name, seen.text)
	}
	if err := os.WriteFile(g.path, []byte(b.String()), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func TestScreens(t *testing.T) {
	wanted := regexp.MustCompile(*only)
	for _, c := range scenarios {
		if !wanted.MatchString(c.name) {
			continue
		}
		for _, z := range sizes {
			t.Run(c.name+"-"+z.String(), func(t *testing.T) {
				t.Parallel()
				p := newPerson(t)
				g := openGolden(t, c.name+"-"+z.String())
				s := p.sits(z)
				c.play(s, func(name string) { t.Helper(); s.compares(g, name) })
				s.keeps(g)
				if n := len(p.model.answers); n > 0 || p.model.extra > 0 {
					t.Errorf("the model has %d answers left, and was asked %d times more than it had", n, p.model.extra)
				}
			})
		}
	}
}
