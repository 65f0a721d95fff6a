//go:build screens

package screens

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

var picture = flag.String("picture", "", "write the picture of a session to this file: make picture")

// maxPicture limits the bytes of the picture: readers of the README load it.
const maxPicture = 100_000

// The picture's measures, in pixels, and its colours. It has a background of its own,
// so that it looks the same on a light page and on a dark one.
const (
	cellWidth, cellHeight = 9.6, 20.0
	margin                = 16.0
	background            = "#15181e"
	foreground            = "#d5d9e0"
)

// palette has the sixteen colours of a terminal, for the picture.
var palette = [16]string{
	"#2a2f38", "#f07178", "#8fd08a", "#e8c26a", "#7aa2f7", "#c792ea", "#6fc8d8", "#c5cad3",
	"#7d8594", "#ff8b92", "#a8e6a3", "#ffd98a", "#9dbbff", "#dcb0ff", "#8fe3f0", "#ffffff",
}

// frame is a screen of the picture, as tmux captures it with its colours, and how long
// it is shown, in seconds.
type frame struct {
	screen  string
	seconds float64
}

// style is the look of a piece of a row.
type style struct {
	color, behind                           string // empty: the picture's own
	bold, dim, italic, underlined, reversed bool
}

// piece is a part of a row that is written in one style.
type piece struct {
	style
	column int
	text   string
}

var control = regexp.MustCompile(`\x1b\[([0-9;:]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-B]|[\x0e\x0f]`)

// pieces takes the escape sequences of a row away. What they say goes on in the next
// row.
func pieces(row string, now *style) []piece {
	var out []piece
	column := 0
	write := func(text string) {
		if text == "" {
			return
		}
		out = append(out, piece{*now, column, text})
		column += ansi.StringWidth(text)
	}
	for {
		m := control.FindStringSubmatchIndex(row)
		if m == nil {
			write(row)
			return out
		}
		write(row[:m[0]])
		if m[4] >= 0 && row[m[4]:m[5]] == "m" {
			now.set(row[m[2]:m[3]])
		}
		row = row[m[1]:]
	}
}

// set takes the numbers of a sequence that sets the style.
func (s *style) set(numbers string) {
	var n []int
	for _, number := range strings.FieldsFunc(numbers, func(r rune) bool { return r == ';' || r == ':' }) {
		i, _ := strconv.Atoi(number)
		n = append(n, i)
	}
	if len(n) == 0 {
		n = []int{0}
	}
	for len(n) > 0 {
		used := 1
		switch c := n[0]; {
		case c == 0:
			*s = style{}
		case c == 1:
			s.bold = true
		case c == 2:
			s.dim = true
		case c == 3:
			s.italic = true
		case c == 4:
			s.underlined = true
		case c == 7:
			s.reversed = true
		case c == 22:
			s.bold, s.dim = false, false
		case c == 23:
			s.italic = false
		case c == 24:
			s.underlined = false
		case c == 27:
			s.reversed = false
		case c >= 30 && c <= 37:
			s.color = palette[c-30]
		case c >= 40 && c <= 47:
			s.behind = palette[c-40]
		case c >= 90 && c <= 97:
			s.color = palette[c-90+8]
		case c >= 100 && c <= 107:
			s.behind = palette[c-100+8]
		case c == 39:
			s.color = ""
		case c == 49:
			s.behind = ""
		case c == 38 || c == 48:
			var color string
			color, used = long(n)
			if c == 38 {
				s.color = color
			} else {
				s.behind = color
			}
		}
		n = n[used:]
	}
}

// long is a colour of the 256, or one by its parts, and how many numbers it takes.
func long(n []int) (color string, used int) {
	switch {
	case len(n) >= 5 && n[1] == 2:
		return fmt.Sprintf("#%02x%02x%02x", n[2]&0xff, n[3]&0xff, n[4]&0xff), 5
	case len(n) >= 3 && n[1] == 5:
		switch i := n[2] & 0xff; {
		case i < 16:
			return palette[i], 3
		case i < 232:
			level := func(v int) int { return min(v, 1)*55 + v*40 }
			i -= 16
			return fmt.Sprintf("#%02x%02x%02x", level(i/36), level(i/6%6), level(i%6)), 3
		default:
			v := 8 + (i-232)*10
			return fmt.Sprintf("#%02x%02x%02x", v, v, v), 3
		}
	}
	return "", len(n)
}

// draw makes an SVG of frames, which follow each other and begin again. Who has said
// that nothing shall move sees the last one.
func draw(z size, frames []frame) []byte {
	var b bytes.Buffer
	width, height := float64(z.columns)*cellWidth+2*margin, float64(z.rows)*cellHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="A session of Stockade in a terminal">`+"\n", width, height, width, height)
	var all float64
	for _, f := range frames {
		all += f.seconds
	}
	b.WriteString("<style>\ntext{font:16px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre;fill:" + foreground + "}\n" +
		".b{font-weight:bold}.d{opacity:.65}.i{font-style:italic}.u{text-decoration:underline}\n")
	if len(frames) > 1 {
		at := 0.0
		fmt.Fprintf(&b, "g{visibility:hidden;animation:%gs step-end infinite}\n", all)
		for i, f := range frames {
			from, to := at/all*100, (at+f.seconds)/all*100
			fmt.Fprintf(&b, "@keyframes k%d{0%%{visibility:%s}%.3f%%{visibility:visible}", i, map[bool]string{true: "visible", false: "hidden"}[i == 0], from)
			if i < len(frames)-1 {
				fmt.Fprintf(&b, "%.3f%%{visibility:hidden}", to)
			}
			fmt.Fprintf(&b, "}#f%d{animation-name:k%d}\n", i, i)
			at += f.seconds
		}
		fmt.Fprintf(&b, "@media(prefers-reduced-motion:reduce){g{animation:none}#f%d{visibility:visible}}\n", len(frames)-1)
	}
	fmt.Fprintf(&b, "</style>\n<rect width=\"%g\" height=\"%g\" rx=\"10\" fill=\"%s\"/>\n", width, height, background)
	for i, f := range frames {
		fmt.Fprintf(&b, "<g id=\"f%d\">\n", i)
		var now style
		row := 0
		for line := range strings.Lines(f.screen) {
			for _, p := range pieces(strings.TrimSuffix(line, "\n"), &now) {
				p.draw(&b, row)
			}
			row++
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (p piece) draw(b *bytes.Buffer, row int) {
	columns := ansi.StringWidth(p.text)
	x, y := margin+float64(p.column)*cellWidth, margin+float64(row)*cellHeight
	color, behind := p.color, p.behind
	if p.reversed {
		if color == "" {
			color = foreground
		}
		if behind == "" {
			behind = background
		}
		color, behind = behind, color
	}
	if behind != "" {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%g" fill="%s"/>`, x, y, float64(columns)*cellWidth, cellHeight, behind)
	}
	text := strings.TrimRight(p.text, " ")
	if p.underlined {
		text = p.text
	}
	// Blanks are not written, so that a font with other widths moves nothing.
	blanks := len(text) - len(strings.TrimLeft(text, " "))
	if text = text[blanks:]; text == "" {
		return
	}
	x += float64(blanks) * cellWidth
	fmt.Fprintf(b, `<text x="%.1f" y="%g" textLength="%.1f"`, x, y+15, float64(ansi.StringWidth(text))*cellWidth)
	class := ""
	for _, c := range []struct {
		is   bool
		name string
	}{{p.bold, "b"}, {p.dim, "d"}, {p.italic, "i"}, {p.underlined, "u"}} {
		if c.is {
			class += " " + c.name
		}
	}
	if class != "" {
		fmt.Fprintf(b, ` class="%s"`, class[1:])
	}
	if color != "" {
		fmt.Fprintf(b, ` style="fill:%s"`, color)
	}
	b.WriteByte('>')
	_ = xml.EscapeText(b, []byte(text)) // a buffer takes everything
	b.WriteString("</text>\n")
}

// TestPicture plays the session of the README's picture, and writes it where -picture
// says so.
func TestPicture(t *testing.T) {
	p := newPerson(t)
	z := size{80, 24}
	s := p.sits(z)
	var frames []frame
	shows := func(seconds float64) {
		s.settles()
		screen := strings.ReplaceAll(s.capture("-e"), p.dir, "/home/ada/projects/the-garden") // which is as long
		frames = append(frames, frame{screen, seconds})
	}
	p.answers(
		calls(hold, call("file_read", `{"path":"notes.md"}`)),
		calls("", call("file_edit", `{"path":"notes.md","old_string":"TODO","new_string":"DONE","replace_all":true}`), bash("make test")),
		text(hold+"Both are **done**, and the notes pass."))
	s.says("stockade chat")
	s.until(prompt)
	shows(1)
	s.types("replace TODO with DONE in notes.md, then run the tests")
	s.until(`run the tests`)
	shows(1.5)
	s.presses("Enter")
	p.held()
	s.until(`waiting for the model`)
	shows(1)
	p.goesOn()
	s.until(question)
	shows(4)
	s.presses("y")
	p.held()
	s.until(`ok  notes`)
	shows(2)
	p.goesOn()
	s.until(`\d tokens`)
	s.until(prompt)
	shows(5)
	svg := draw(z, frames)
	if len(svg) > maxPicture {
		t.Errorf("the picture has %d bytes, and may have %d", len(svg), maxPicture)
	}
	if err := xml.Unmarshal(svg, new(struct{})); err != nil {
		t.Error(err)
	}
	if *picture != "" {
		if err := os.WriteFile(*picture, svg, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d frames, %d bytes", len(frames), len(svg))
}
