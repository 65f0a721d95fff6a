package markdown

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal/terminaltest"
)

func options(width int, color bool) Options {
	return Options{Width: func() int { return width }, Color: color}
}

// The answers in testdata and how they look; UPDATE_ROWS=1 writes the latter.
func TestAnswersLookLike(t *testing.T) {
	answers, err := filepath.Glob("testdata/*.md")
	if err != nil || len(answers) == 0 {
		t.Fatal(answers, err)
	}
	for _, path := range answers {
		for _, mode := range []struct {
			name  string
			width int
			color bool
		}{{"80", 80, false}, {"40", 40, false}, {"color", 80, true}} {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(strings.Join(Render(string(source), options(mode.width, mode.color)), "\n")+"\n", "\x1b", "␛")
			name := strings.TrimSuffix(path, ".md") + "." + mode.name + ".txt"
			if os.Getenv("UPDATE_ROWS") != "" {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(name); err != nil || string(want) != got {
				t.Errorf("%s (%v) is now\n%s", name, err, got)
			}
		}
	}
}

func TestBlocks(t *testing.T) {
	for _, test := range []struct {
		name, text string
		rows       []string
		narrow     bool // 20 columns, not 60
	}{
		{"an empty text has no rows", "\n \n\n", nil, false},
		{"empty lines between blocks are one row, others none", "\n\na\n\n\nb\n\n", []string{"a", "", "b"}, false},
		{"lines of a paragraph are one", "a\nb  \nc\\\nd", []string{"a b", "c", "d"}, false},
		{"HTML is text", "<b>a</b> Vec<String> <!-- b -->\n\n<div>\nc\n</div>", []string{"<b>a</b> Vec<String> <!-- b -->", "", "<div> c </div>"}, false},
		{"a reference is text", "[a][b]\n\n[b]: http://c.example", []string{"[a][b]", "", "[b]: http://c.example"}, false},
		{"a link shows where it leads", "[bank](http://evil.example)", []string{"bank (http://evil.example)"}, false},
		{"a link without text shows where it leads", "[](http://evil.example)", []string{"(http://evil.example)"}, false},
		{"a link whose text is its target shows it once", "[http://a.example](http://a.example) <http://b.example>", []string{"http://a.example http://b.example"}, false},
		{"a link that is no URL, and one to a file, are shown", "[a](http://%zz) [b](/etc/passwd)", []string{"a (http://%zz) b (/etc/passwd)"}, false},
		{"the title of a link is shown", `[a](b "c")`, []string{`a (b) "c"`}, false},
		{"an image is named", "![a](b.png)", []string{"image: a (b.png)"}, false},
		{"entities that show are decoded", "&lt;a&gt; &auml; &#65; &amp;lt;", []string{"<a> ä A &lt;"}, false},
		{"entities that do not show stay", "&#27;[31m &rlm; &#8238; &nbsp; &#x202e; &#10; &Tab; &#768;", []string{"&#27;[31m &rlm; &#8238; &nbsp; &#x202e; &#10; &Tab; &#768;"}, false},
		{"code is not decoded", "`&lt; \\* **a**`", []string{"`&lt; \\* **a**`"}, false},
		{"a target is shown as it is written", "[a](&#x202e;b&#10;c&#27;)", []string{"a (&#x202e;b&#10;c&#27;)"}, false},
		{"accents do not pile up where marks were", "*a\u0301\u0302*\u0301\u0302", []string{"*a\u0301\u0302*\u0301\u0302"}, false},
		{"an item has several paragraphs, and lists in it", "- a\n\n  b\n  - c\n- d", []string{" • a", "", "   b", "    • c", " • d"}, false},
		{"numbers are shown as they are written", "7) a\n7) b", []string{" 7) a", " 7) b"}, false},
		{"a number in the middle of a paragraph is none of a list", "In\n1984. And\n- b", []string{"In 1984. And", " • b"}, false},
		{"an empty item is shown", "-\n- a", []string{" •", " • a"}, false},
		{"a task keeps its box", "- [ ] a\n- [x] b", []string{" • [ ] a", " • [x] b"}, false},
		{"code in an item is code", "1. a\n   ```\n   b *c*\n\n   - d\n   ```\n2. e", []string{" 1. a", "      b *c*", "", "      - d", " 2. e"}, false},
		{"code that is not closed ends with its item", "- a\n  ```\n  b\n- c", []string{" • a", "     b", " • c"}, false},
		{"code that is longer than the row goes on below", "```\n" + strings.Repeat("x", 30) + "\n```", []string{"    " + strings.Repeat("x", 16), "    " + strings.Repeat("x", 14)}, true},
		{"beside the marks of code, what is no language is shown", "```go title\na\n```", []string{"    go title", "    a"}, false},
		{"a quote goes on where its marks are left out", "> a\nb\n\nc", []string{"> a b", "", "c"}, false},
		{"a quote keeps its empty lines", "> a\n>\n> b", []string{"> a", ">", "> b"}, false},
		{"deep containers are text", strings.Repeat("> ", 9) + "a", []string{"> > > > > > > > > a"}, false},
		{"a heading has empty rows around it", "a\n## b ##\nc", []string{"a", "", "## b", "", "c"}, false},
		{"a heading may be underlined", "a\nb\n===", []string{"# a b"}, false},
		{"a row is full with a wide character", strings.Repeat("世", 11), []string{strings.Repeat("世", 10), "世"}, true},
		{"a word that is too long is broken", strings.Repeat("a", 21) + " b", []string{strings.Repeat("a", 20), "a b"}, true},
		{"a table", "|a|b|\n|-|-:|\n|`c`|1|\n|d", []string{"a   | b", "----+--", "`c` | 1", "d   |"}, false},
		{"a table that is too wide is a list", "|a|b|c|\n|-|-|-|\n|dddddddddd|eeeeeeeeee|f|", []string{"a: dddddddddd", "b: eeeeeeeeee", "c: f"}, true},
		{"a tab is four blanks, in the text up to a fourth column", "```\n\ta\tb\n```", []string{"        a   b"}, false},
	} {
		width := 60
		if test.narrow {
			width = 20
		}
		if got := Render(test.text, options(width, false)); !slices.Equal(got, test.rows) {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

func TestNothingOfTheTextActsOnTheTerminal(t *testing.T) {
	for _, v := range terminaltest.Vectors() {
		for _, around := range []string{"%s", "# %s", "- %s", "> %s", "```go\n%s\n```", "`%s`", "**%s**", "[%s](%[1]s)", "|%s|\n|-|\n|%[1]s|", "    %s"} {
			for _, color := range []bool{false, true} {
				rows := Render(fmt.Sprintf(around, v.Text), options(80, color))
				e := &terminaltest.Emulator{Columns: 1 << 20}
				fmt.Fprint(e, strings.Join(rows, "\n"))
				if e.Acts != nil || e.Styled && !color {
					t.Errorf("%s in %q: it did %q", v.Name, around, e.Acts)
				}
			}
		}
	}
}

func TestRowsAreFinishedWithTheirBlock(t *testing.T) {
	s := New(options(80, false))
	for _, step := range []struct {
		add        string
		done, rest []string
	}{
		{"Some **bo", nil, []string{"Some **bo"}},
		{"ld** text", nil, []string{"Some **bold** text"}},
		{"\n", nil, []string{"Some **bold** text"}},
		{"\n- a", []string{"Some **bold** text"}, []string{"", " • a"}},
		{"\n- b\n", []string{"", " • a"}, []string{" • b"}},
		{"```\nx\ny", []string{" • b", "    x"}, []string{"    y"}},
		{"\n```\nc", []string{"    y"}, []string{"c"}},
	} {
		if done := s.Add(step.add); !slices.Equal(done, step.done) {
			t.Errorf("%q finished %q", step.add, done)
		}
		if rest := s.Rest(9); !slices.Equal(rest, step.rest) {
			t.Errorf("after %q there is %q", step.add, rest)
		}
	}
	if rest := s.Rest(0); len(rest) != 0 {
		t.Errorf("no rows are %q", rest)
	}
}

func TestTheWorkIsBounded(t *testing.T) {
	// The libraries never get more than a block, even if they get it again and again.
	for _, text := range []string{"word ", "x", "a\n", "- item\n", "> quote\n", "|a|b|\n", "```go\nfunc main() {} // x\n", "[a](b) ", "*a ", "\x1b", "```c\n/* x\n"} {
		s := New(options(80, true))
		whole := strings.Repeat(text, (32<<10)/len(text))
		if strings.HasPrefix(text, "```") {
			open, line, _ := strings.Cut(text, "\n")
			whole = open + "\n" + strings.Repeat(line, (32<<10)/len(line))
		}
		held := 0
		for rest := whole; rest != ""; {
			n := min(len(rest), 100)
			s.Add(rest[:n])
			rest = rest[n:]
			held = max(held, len(s.line)+s.paraBytes)
		}
		s.End()
		if limit := 8 * (len(whole) + 1); s.parsedBytes > limit { // 8: what one byte becomes if it does not show
			t.Errorf("%q: %d bytes were read for %d", text, s.parsedBytes, len(whole))
		}
		if held > maxLine+8*maxBlock {
			t.Errorf("%q: %d bytes were held", text, held)
		}
	}
}

var escape = regexp.MustCompile("\x1b\\[[0-9;]*m")

func FuzzStream(f *testing.F) {
	for _, v := range terminaltest.Vectors() {
		f.Add(v.Text, uint8(40), uint8(3))
	}
	answers, _ := filepath.Glob("testdata/*.md")
	for _, path := range answers {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), uint8(60), uint8(7))
	}
	f.Add("- a\n  3  bash\n\n> | x |\n> |--:|\n> |   3  bash|\n\n1) ~~~go\n   x", uint8(30), uint8(2))
	f.Fuzz(func(t *testing.T, text string, width, piece uint8) {
		if len(text) > 32<<10 {
			return
		}
		w := int(max(width, minWidth))
		for _, color := range []bool{false, true} {
			whole := Render(text, options(w, color))
			s := New(options(w, color))
			var rows []string
			for rest := text; rest != ""; {
				n := min(len(rest), int(piece)+1)
				rows = append(rows, s.Add(rest[:n])...)
				rest = rest[n:]
				if len(text) < 1000 {
					s.Rest(3)
				}
			}
			ahead := s.Rest(1 << 20)
			end := s.End()
			if !slices.Equal(bare(ahead), bare(end)) {
				t.Errorf("rest %q, but end %q", ahead, end)
			}
			if rows = append(rows, end...); !slices.Equal(bare(rows), bare(whole)) {
				t.Errorf("in pieces %q, as a whole %q", rows, whole)
			}
			for _, row := range rows {
				plain := escape.ReplaceAllString(row, "")
				switch {
				case !utf8.ValidString(row), strings.ContainsAny(plain, "\n\t"), terminal.Visible(plain) != plain:
					t.Errorf("%q holds what does not show", row)
				case !color && plain != row:
					t.Errorf("%q has colours", row)
				case ansi.StringWidth(plain) > w:
					t.Errorf("%q is wider than %d", row, w)
				case w >= 40 && regexp.MustCompile(`^  [^ |]`).MatchString(plain):
					t.Errorf("%q begins like a row of the program", row)
				case strings.TrimRight(plain, " ") != plain:
					t.Errorf("%q ends with blanks", row)
				}
			}
		}
	})
}

// bare takes the colours out: code may lose them if the machine is slow.
func bare(rows []string) (out []string) {
	for _, r := range rows {
		out = append(out, escape.ReplaceAllString(r, ""))
	}
	return out
}

// answer is about a megabyte of what models write.
func answer() string {
	text, err := os.ReadFile("testdata/answer.md")
	if err != nil {
		panic(err)
	}
	return strings.Repeat(string(text)+"\n\n", (1<<20)/len(text))
}

// BenchmarkStream is 1 MB in pieces of 4 bytes, with what is not finished rendered
// after each 500, as a screen does.
func BenchmarkStream(b *testing.B) {
	text := answer()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s, count := New(options(80, true)), 0
		for rest := text; rest != ""; count++ {
			n := min(len(rest), 4)
			s.Add(rest[:n])
			rest = rest[n:]
			if count%125 == 0 {
				s.Rest(20)
			}
		}
		s.End()
	}
}

// BenchmarkWhole is the same text at once.
func BenchmarkWhole(b *testing.B) {
	text := answer()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Render(text, options(80, true))
	}
}

// BenchmarkOneBlock is 1 MB of code and of one paragraph, in pieces.
func BenchmarkOneBlock(b *testing.B) {
	for _, text := range []string{"```go\n" + strings.Repeat("func main() { fmt.Println(\"a\", 1) } // comment\n", 1<<20/47), strings.Repeat("Some **bold** words and `code`. ", 1<<15)} {
		b.Run(text[:5], func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s := New(options(80, true))
				for rest := text; rest != ""; {
					n := min(len(rest), 20)
					s.Add(rest[:n])
					rest = rest[n:]
				}
				s.End()
			}
		})
	}
}
