package visible

import (
	"strings"
	"testing"
)

func TestShown(t *testing.T) {
	// Three downloads, each of which is drawn again in its row.
	downloads := "a: 0%\nb: 0%\nc: 0%\n"
	for range 50 {
		downloads += "\x1b[3A\x1b[2Ka: 50%\r\x1b[1B\x1b[Kb: wait\r\x1b[1B\x1b[Kc: 99%\x1b[1B\r"
	}
	downloads += "\x1b[3A\x1b[2K\ra: done\x1b[1B\r\x1b[2Kb: done\x1b[1B\r\x1b[2Kc: done\x1b[1B\r"
	for name, c := range map[string]struct{ wrote, want string }{
		"plain text stays":                            {"a\tb \n\n  c", "a\tb \n\n  c"},
		"lines that end in CR LF are whole":           {"one\r\ntwo  \r\n", "one\ntwo  \n"},
		"frames":                                      {"10%\r 50%\r100%\nok\n", "100%\nok\n"},
		"a shorter frame leaves the rest":             {"downloading\rdone\n", "doneloading\n"},
		"a frame that blanks cover":                   {"downloading\rdone       \n", "done\n"},
		"a frame that is erased":                      {"downloading\r\x1b[Kdone\n", "done\n"},
		"a frame that blanks erase":                   {"downloading\r           \rdone\n", "done\n"},
		"rows that are drawn again":                   {downloads, "a: done\nb: done\nc: done\n"},
		"a row that is erased whole":                  {"abc\x1b[2K\x1b[1Gx\n", "x\n"},
		"the screen from the cursor on":               {"a\nb\nc\x1b[2A\x1b[1G\x1b[J.", "."},
		"the whole screen":                            {"a\nb\n\x1b[2J\x1b[Hc", "c"},
		"what scrolled away cannot be erased":         {strings.Repeat("x\n", 100) + "\x1b[3J\x1b[H\x1b[Jy", strings.Repeat("x\n", 37) + "y"},
		"a place by its row and column":               {"\x1b[2;3Hx", "\n  x"},
		"a column that is not there":                  {"a\x1b[4Cb", "a    b"},
		"the place that was saved":                    {"ab\x1b7\x1b[1Gx\x1b8c\x1b[s\x1b[1Gy\x1b[ud", "ybcd"},
		"bold as in a manual":                         {"N\bNA\bAM\bME\bE _\bx", "NAME x"},
		"colours":                                     {"\x1b[1;38;5;9mred\x1b[0m \x1b[38:2::1:2:3mx\x1b[m", "red x"},
		"hidden text":                                 {"\x1b[8mrm -rf\x1b[28m \x1b[30;40mblack\x1b[0m", "rm -rf black"},
		"a title":                                     {"\x1b]0;\u2705 t\u00e9st\x07a\x1b]2;t\x1b\\b", "ab"},
		"a link":                                      {"\x1b]8;;https://example.com\x1b\\here\x1b]8;;\x1b\\.", "here."},
		"a title that never ends ends with the line":  {"a\x1b]0;t\nb\x1bPq\nc\x1b[31\nd", "a\nb\nc\nd"},
		"an image":                                    {"\x1bPq#0;2;0;0;0~~\x1b\\a\x1b_Gf=24;AAAA\x1b\\b", "ab"},
		"the alternate screen":                        {"a\n\x1b[?1049h\x1b[2J\x1b[Hhidden\nlines\x1b[?1049lb", "a\nb"},
		"the alternate screen at the end":             {"a\n\x1b[?1049hb", "a\nb"},
		"modes":                                       {"\x1b[?25l\x1b[?2026ha\x1b[?2026l\x1b[?25h\x1b[?1hb\x1b>\x1b(B", "ab"},
		"wide characters":                             {"\u4e16\u754c\bx\n\u4e16\rx\n", "\u4e16x\nx\n"},
		"marks":                                       {"e\u0301a\re\u0301x\n", "e\u0301x\n"},
		"bytes that are not UTF-8":                    {"\xff\x9b31m\xb0\xa1\n", "\xff\x9b31m\xb0\xa1\n"},
		"a lone ESC":                                  {"a\x1b\x1b[31mb\x1b", "ab"},
		"ESC before other text":                       {"\x1b\u4e16a", ""},
		"NUL stays, for it separates names":           {"a\x00b\x00", "a\x00b\x00"},
		"a bell":                                      {"a\ab", "ab"},
		"a long line stays one":                       {strings.Repeat("0123456789", 300) + "\rx\n", strings.Repeat("0123456789", 300) + "x\n"},
		"far to the right":                            {"a\x1b[999999999999999999999999Cb", "a" + strings.Repeat(" ", maxRight-1) + "b"},
		"far down":                                    {"a\x1b[999999999Bb\x1b[999999999Ac", "abc"},
		"far to the left and up":                      {"a\x1b[999999999D\x1b[999999999Ab", "b"},
		"a far corner":                                {"\x1b[999999999;999999999Ha", strings.Repeat("\n", maxRows-1) + strings.Repeat(" ", maxRight) + "a"},
		"a character with more marks than a row has":  {"a" + strings.Repeat("\u0301", 9000), "a" + strings.Repeat("\u0301", 9000)},
		"more parameters than a sequence can have":    {"\x1b[" + strings.Repeat("1;", 5000) + "mx", "x"},
		"an erased row below the cursor is not there": {"a\nb\n\x1b[2A\x1b[Jc\n", "c\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RenderTerminal(c.wrote); got != c.want {
				t.Errorf("it shows %.200q, want %.200q", got, c.want)
			}
			var out strings.Builder
			s := NewScreen(&out)
			for i := range len(c.wrote) { // byte by byte
				_, _ = s.Write([]byte(c.wrote[i : i+1]))
			}
			s.Flush()
			if want := RenderTerminal(c.wrote); out.String() != want {
				t.Errorf("in pieces it shows %.200q, want %.200q", out.String(), want)
			}
			if again := RenderTerminal(out.String()); strings.ContainsAny(again, "\x1b\r\b") {
				t.Errorf("it shows %.200q", again)
			}
		})
	}
}

// FuzzShown: whatever is written, what is shown holds nothing that acts, and no more than the
// columns and rows of a screen for each sequence.
func FuzzShown(f *testing.F) {
	for _, text := range []string{"a\rb\x1b[2K\x1b[A", "\x1b[5;5H\u4e16\b\b\x1b[J", "\x1b[?1049h\x1b7\n\x1b8", "\x1b]0;a\x1b\\\x9b\xc2\x9b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := RenderTerminal(text)
		if strings.ContainsAny(got, "\x1b\r\b\a") || RenderTerminal(got) != got {
			t.Errorf("%q shows %q", text, got)
		}
		if most := (strings.Count(text, "\x1b") + 1) * (maxRows + 2*maxRight); len(got) > len(text)*9+most {
			t.Errorf("%d bytes show %d", len(text), len(got))
		}
	})
}
