package lines

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// reference is a simple implementation of the search.
func reference(text, expr string, context int) (out []string) {
	if strings.Contains(text[:min(len(text), BinaryProbe)], "\x00") {
		return nil
	}
	re := regexp.MustCompile(expr)
	all := strings.SplitAfter(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	marks := make([]byte, len(all))
	for i, l := range all {
		if ended, ok := strings.CutSuffix(l, "\n"); ok {
			l = strings.TrimSuffix(ended, "\r")
		}
		all[i] = l[:min(len(l), MaxLine)]
		if re.MatchString(all[i]) {
			marks[i] = ':'
			for j := max(0, i-context); j < min(len(all), i+context+1); j++ {
				if marks[j] == 0 {
					marks[j] = '-'
				}
			}
		}
	}
	for i, m := range marks {
		if m != 0 {
			text, more := Cut([]byte(all[i]), 50)
			out = append(out, fmt.Sprintf("%d%c %s %v", i+1, m, text, more))
		}
	}
	return out
}

func scan(t testing.TB, text, expr string, context int, size int64) (out []string) {
	t.Helper()
	p, err := Compile(expr, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &Scanner{Pattern: p, Context: context, Chars: 50, Check: func() error { return nil }}
	s.Emit = func(l Line) error {
		mark := '-'
		if l.Matches {
			mark = ':'
		}
		out = append(out, fmt.Sprintf("%d%c %s %v", l.Number, mark, l.Text, l.Cut))
		return nil
	}
	if _, err := s.Scan(strings.NewReader(text), size); err != nil {
		t.Fatal(err)
	}
	return out
}

func compare(t testing.TB, text, expr string, context int) {
	t.Helper()
	want := reference(text, expr, context)
	for _, size := range []int64{0, int64(len(text))} {
		if got := scan(t, text, expr, context, size); !slices.Equal(got, want) {
			t.Fatalf("%q, context %d, size %d, in %.200q (%d bytes):\n got %.500q\nwant %.500q", expr, context, size, text, len(text), got, want)
		}
	}
}

var expressions = []string{
	"hit", "hit|miss", "h.t", "^hit$", "^hit", "hit$", "(?i:hit)", "(?i:task list)", "(?i:k)", "(?i:ſ)", "x*", "", "hit\r", "hit\r?$", "a\nb",
	`\bhit\b`, "(h|m)i(t|ss)", "(foo|bar)+baz", "h{2,3}it", "h{0,3}it", "hit?", "[h]it", "(?s:hit.*)", "\uFFFDhit", "\uFFFD", "ü", "(?i:Ü)", `[^a]hit`,
	"a|b|c|d|e|f|g|h|i|j", "(?i:a(b|k)c)", `\x00`, "e", "eeee", "(?m:^hit$)", `hit\z`, `\Ahit`, `(?:hit)`, "(?P<n>hit)x", "", `\pL+hit`, "(?i)hit|(?-i)MISS",
}

func TestLinesAreThoseOfTheObviousWay(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{
		"hit", "HIT", "Hit", "miss", "\n", "\n", "\n", "\r\n", "\r", " ", "a", "b", "k", "\u212A", "ſ", "tas\u212A list", "TASK LIST", "e", "eeee", "eeeeee",
		"ü", "Ü", "\xff", "\uFFFD", "foo", "bar", "baz", "hhit", strings.Repeat("x", 60), strings.Repeat("y", 1000),
	}
	for round := range 4000 {
		var b strings.Builder
		for range random.IntN(120) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		compare(t, b.String(), expressions[round%len(expressions)], random.IntN(4))
	}
}

func TestLongLinesAndBlocks(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, n := range []int{
		blockBytes - 1, blockBytes, 2*blockBytes - 3, MaxLine - 3, MaxLine - 1, MaxLine, MaxLine + 1, MaxLine + 2, 3*MaxLine + 7,
	} {
		for _, text := range []string{
			long(n), long(n) + "hit", long(n) + "hit\nhit\n", "hit\n" + long(n) + "\nhit", long(n) + "\r\nhit\n" + long(n),
			"hit" + long(n) + "\n\nhit", strings.Repeat("abc\n", n/4) + "hit\n" + strings.Repeat("abc\r\n", 9) + long(n) + "\nhit\n",
			strings.Repeat("abc\n", blockBytes/4-10) + long(n) + "\nabc\nhit",
		} {
			compare(t, text, "hit", n%2*3)
		}
	}
}

func TestBinaryFilesHaveNoLines(t *testing.T) {
	for _, text := range []string{"hit\n\x00", strings.Repeat("x", BinaryProbe-1) + "\x00\nhit", strings.Repeat("x", BinaryProbe) + "\x00\nhit", "\x00"} {
		compare(t, text, "hit", 0)
	}
}

// The caller learns that there is text that was not searched.
func TestTextInUTF16IsNotSearched(t *testing.T) {
	p, err := Compile("hit", 0)
	if err != nil {
		t.Fatal(err)
	}
	s := Scanner{Pattern: p, Chars: 10, Emit: func(Line) error { t.Error("there is a line"); return nil }, Check: func() error { return nil }}
	for _, text := range []string{"\xff\xfeh\x00i\x00t\x00", "\xfe\xff\x00h\x00i\x00t"} {
		if _, err := s.Scan(strings.NewReader(text), int64(len(text))); err != errUTF16 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestNeeds(t *testing.T) {
	tests := map[string]string{
		"hit": "hit", "(?i:Todo: x)": "~todo: x", "(?i:deprecated: use net)": "~deprecated: u", "(panic|Fatalf)\\(": "Fatalf panic",
		`func \w+Handler\(`: "Handler(", `a+b`: "b", "(foo)(bar)": "foobar", "x*": "", "(foo|b*)": "", "(foo){2,}": "foo", "(foo)?bar": "bar",
		"\uFFFDab": "ab", "(?i:kelvin)": "~elvin", "(?i:ss)": "", "a|b|c|d|e|f|g|h|i": "",
	}
	for expr, want := range tests {
		p, err := Compile(expr, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range p.needles {
			text := string(n.text)
			if n.fold {
				text = "~" + text
			}
			got = append(got, text)
		}
		slices.Sort(got)
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q needs %q, want %q", expr, s, want)
		}
	}
}

func TestCompileRefusesWhatIsTooLarge(t *testing.T) {
	for expr, want := range map[string]error{"x{1000}": nil, "(x{30}y{30}){30}": ErrTooLarge, `(\pL{500})(\pL{600})`: ErrTooLarge, "": nil} {
		if _, err := Compile(expr, 1100); err != want {
			t.Errorf("%q: %v, want %v", expr, err, want)
		}
	}
}

// One line can take minutes to match.
func TestCheckEndsTheMatchOfOneLine(t *testing.T) {
	p, err := Compile("(x?){500}x{499}y", 4096)
	if err != nil {
		t.Fatal(err)
	}
	p.needles = nil
	text := strings.Repeat("x", MaxLine)
	enough := errors.New("enough")
	checks := 0
	s := &Scanner{Pattern: p, Chars: 10, Emit: func(Line) error { t.Error("a match"); return nil }}
	s.Check = func() error {
		if checks++; checks > 20 { // the reads are the first
			return enough
		}
		return nil
	}
	if _, err := s.Scan(strings.NewReader(text), 0); err != enough {
		t.Errorf("the scan ended with %v", err)
	}
}

func FuzzScan(f *testing.F) {
	for i, expr := range expressions {
		f.Add("a\nhit\r\nmiss\n\xffTASK LIST", expr, uint8(i))
	}
	f.Fuzz(func(t *testing.T, text, expr string, context uint8) {
		if len(expr) > 200 || len(text) > 1<<16 {
			return
		}
		if p, err := Compile(expr, 1000); err != nil || p.Steps()*uint64(len(text)) > 1<<24 {
			return
		}
		compare(t, text, expr, int(context%21))
	})
}

func BenchmarkScan(b *testing.B) {
	text := bytes.Repeat([]byte("\tif err := f(ctx, \"some text\", n); err != nil {\n\t\treturn fmt.Errorf(\"do: %w\", err)\n\t}\n"), 12<<10/90)
	for _, expr := range []string{"zebra crossing", "(?i:zebra crossing)", `zebra\w+\(`, "eeee", `[a-z]{9}[0-9]`, `\b[A-Z]{5,}[0-9]{4}`, "(x?){100}y", `(a|b|c|d|e|f){50}z`, `\pL{100}x`} {
		b.Run(expr, func(b *testing.B) {
			p, err := Compile(expr, 0)
			if err != nil {
				b.Fatal(err)
			}
			s := &Scanner{Pattern: p, Chars: 100, Check: func() error { return nil }, Emit: func(Line) error { return nil }}
			b.SetBytes(int64(len(text)))
			r := bytes.NewReader(text)
			var w Work
			for b.Loop() {
				w, _ = s.Scan(r, int64(len(text)))
			}
			ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			b.ReportMetric(ns/float64(len(text)), "ns/byte")
			b.ReportMetric(float64(p.Steps()), "steps")
			if w.Matched > 0 {
				b.ReportMetric(ns/float64(w.Matched)/float64(p.Steps()), "ns/byte/step")
			}
		})
	}
}

// work searches a text without a match and returns the work.
func work(t *testing.T, expr, text string) (w Work, checks int) {
	t.Helper()
	p, err := Compile(expr, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &Scanner{Pattern: p, Chars: 10, Check: func() error { checks++; return nil }, Emit: func(Line) error { t.Error("a match"); return nil }}
	if w, err = s.Scan(strings.NewReader(text), int64(len(text))); err != nil {
		t.Fatal(err)
	}
	return w, checks
}

// A case of a letter that does not occur is not searched for again in every line.
func TestACaseThatIsNotThereIsLookedForOnce(t *testing.T) {
	const size = 1 << 20
	for _, text := range []string{strings.Repeat("q\n", size/2), strings.Repeat("Q\n", size/2)} {
		w, checks := work(t, `(?i:q)[0-9]`, text)
		if w.Looked > 3*size || w.Looked < size || w.Lines != size/2 || w.Matched < size {
			t.Errorf("%+v", w)
		}
		if checks < size/blockBytes {
			t.Errorf("checked %d times", checks)
		}
	}
}

// A long text of which almost all occurs everywhere.
func TestATextInAnyCaseIsComparedInPart(t *testing.T) {
	long := "(?i:" + strings.Repeat("q", 900) + "z)"
	p, err := Compile(long, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range p.needles {
		if len(n.text) > maxFold || n.text[n.at] != n.a {
			t.Errorf("needs %q, of it %d", n.text, n.at)
		}
	}
	for i := range 40 { // whatever part is looked for, the whole is found
		text := strings.Repeat("e", i) + "Q" + strings.Repeat("t", 39-i)
		compare(t, "no\n"+strings.ToUpper(text)+"\n"+text[1:]+"\n"+text, "(?i:"+text+")", 1)
	}
}

// Check is called about once in a block, for many empty lines as for one long line.
func TestCheckIsCalledOnceInABlock(t *testing.T) {
	for _, text := range []string{strings.Repeat("\n", 4*MaxLine), strings.Repeat("x", MaxLine), strings.Repeat(strings.Repeat("x", 300)+"\n", 4000)} {
		reads := len(text)/blockBytes + 10
		w, checks := work(t, "[0-9]", text)
		if least := int(w.Matched / blockBytes); checks < least || checks > 40*reads {
			t.Errorf("checked %d times in %d bytes that were matched", checks, w.Matched)
		}
	}
}

// An expression that is too large is refused before it is compiled.
func TestASizeIsEstimatedBeforehand(t *testing.T) {
	for _, expr := range []string{strings.Repeat("x{1000}", 100), strings.Repeat("(?:(?:x{10}){10}){10}", 40), strings.Repeat(`(?:\pL{30}|b?){30}`, 50)} {
		tree, err := syntax.Parse(expr, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := size(tree, 4096); got <= 4096 {
			t.Errorf("%.20q has a size of %d", expr, got)
		}
		if n := testing.AllocsPerRun(1, func() { _, _ = Compile(expr, 4096) }); n > 20_000 {
			t.Errorf("%.20q: %v allocations", expr, n)
		}
	}
	// An expression that is small enough is never refused.
	for _, expr := range append(expressions, "(a|b)*c+?d{2,}e{0,3}f{3,5}", "((?:(?:)|^){3}$){4}", "x{0}", "(?:x{0,9}y){7}") {
		tree, err := syntax.Parse(expr, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		prog, err := syntax.Compile(tree.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if got := size(tree, 4096); got > uint64(len(prog.Inst)) || 4*got < uint64(len(prog.Inst))-3 {
			t.Errorf("%q: %d instructions, estimated %d", expr, len(prog.Inst), got)
		}
	}
}
