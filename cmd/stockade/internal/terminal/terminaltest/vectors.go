package terminaltest

import (
	"fmt"
	"strings"
)

// Vector is a text that tries to deceive a person. It contains the word EVIL.
type Vector struct {
	Name  string
	Text  string
	Shows string // text that a person has to see, in one line
	Warns string // part of the warning that a question has to show; empty: none
}

// Parts of the warnings of a question.
const (
	warnHidden     = "are invisible"
	warnBytes      = "not text"
	warnImitation  = "looks like this program"
	warnLookalikes = "look like others"
	warnOrder      = "right to left"
)

// Vectors returns all vectors.
func Vectors() []Vector {
	out := []Vector{
		{"colour", "\x1b[8mEVIL\x1b[0m", "<U+001B>[8mEVIL", warnHidden},
		{"erase the line", "EVIL\x1b[2K\rls", "EVIL<U+001B>[2K<U+000D>ls", warnHidden},
		{"erase the screen", "\x1b[2J\x1b[HEVIL", "<U+001B>[2J<U+001B>[HEVIL", warnHidden},
		{"cursor up", "EVIL\x1b[4A\x1b[100Dls", "EVIL<U+001B>[4A", warnHidden},
		{"another screen", "\x1b[?1049hEVIL", "<U+001B>[?1049hEVIL", warnHidden},
		{"clipboard, OSC 52", "\x1b]52;c;cm0gLXJm\aEVIL", "<U+001B>]52;c;cm0gLXJm<U+0007>EVIL", warnHidden},
		{"link, OSC 8", "\x1b]8;;http://evil.example\x1b\\EVIL\x1b]8;;\x1b\\", "<U+001B>]8;;http://evil.example<U+001B>", warnHidden},
		{"title, OSC 0", "\x1b]0;EVIL\a", "<U+001B>]0;EVIL<U+0007>", warnHidden},
		{"DECRQSS", "\x1bP$q\"pEVIL\x1b\\", "<U+001B>P$q", warnHidden},
		{"question for the answerback", "EVIL\x05", "EVIL<U+0005>", warnHidden},
		{"reset", "\x1bcEVIL", "<U+001B>cEVIL", warnHidden},
		{"line drawing", "\x1b(0EVIL\x0e", "<U+001B>(0EVIL<U+000E>", warnHidden},
		{"C1 in UTF-8", "EVIL\u009b2Kls", "EVIL<U+009B>2Kls", warnHidden},
		{"C1 in UTF-8, OSC", "\u009d0;EVIL\u009c", "<U+009D>0;EVIL<U+009C>", warnHidden},
		{"C1 of 8 bits", "EVIL\x9b2Kls", "EVIL<0x9B>2Kls", warnBytes},
		{"carriage return", "rm EVIL\rls     #", "rm EVIL<U+000D>ls     #", warnHidden},
		{"carriage return and line feed", "EVIL\r\nls", "EVIL<U+000D>", warnHidden},
		{"backspace", "EVIL\b\b\b\bls", "EVIL<U+0008><U+0008><U+0008><U+0008>ls", warnHidden},
		{"delete", "EVIL\x7f", "EVIL<U+007F>", warnHidden},
		{"vertical tab", "EVIL\vls", "EVIL<U+000B>ls", warnHidden},
		{"form feed", "EVIL\fls", "EVIL<U+000C>ls", warnHidden},
		{"NUL", "EVIL\x00ls", "EVIL<U+0000>ls", warnHidden},
		{"NEL", "EVIL\u0085ls", "EVIL<U+0085>ls", warnHidden},
		{"line separator", "EVIL\u2028ls", "EVIL<U+2028>ls", warnHidden},
		{"paragraph separator", "EVIL\u2029ls", "EVIL<U+2029>ls", warnHidden},
		{"soft hyphen", "EV\u00adIL EVIL", "EV<U+00AD>IL", warnHidden},
		{"combining grapheme joiner", "EVIL\u034fls", "EVIL<U+034F>ls", warnHidden},
		{"variation selector", "EVIL\ufe0els", "EVIL<U+FE0E>ls", warnHidden},
		{"variation selectors that hold bytes", "EVIL\U000e0101\U000e0102", "EVIL<U+E0101><U+E0102>", warnHidden},
		{"emoji selectors in a row", "\u26a0\ufe0f\ufe0f\ufe0fEVIL", "<U+FE0F><U+FE0F>EVIL", warnHidden},
		{"Mongolian selector", "EVIL\u180bls", "EVIL<U+180B>ls", warnHidden},
		{"tag characters", "EVIL\U000e0001\U000e0072\U000e006d\U000e007f", "EVIL<U+E0001><U+E0072><U+E006D><U+E007F>", warnHidden},
		{"Hangul filler", "EVIL\u3164ls", "EVIL<U+3164>ls", warnHidden},
		{"half-width Hangul filler", "EVIL\uffa0ls", "EVIL<U+FFA0>ls", warnHidden},
		{"Hangul jamo fillers", "EVIL\u115f\u1160ls", "EVIL<U+115F><U+1160>ls", warnHidden},
		{"Braille blank", "EVIL\u2800ls", "EVIL<U+2800>ls", warnHidden},
		{"no-break space", "EVIL\u00a0ls", "EVIL<U+00A0>ls", warnHidden},
		{"ideographic space", "EVIL\u3000ls", "EVIL<U+3000>ls", warnHidden},
		{"Khmer vowel that does not show", "EVIL\u17b4ls", "EVIL<U+17B4>ls", warnHidden},
		{"musical note without a head", "EVIL\U0001d159ls", "EVIL<U+1D159>ls", warnHidden},
		{"private use", "EVIL\ue0b0\U000f0000", "EVIL<U+E0B0><U+F0000>", warnHidden},
		{"interlinear annotation", "\ufff9EVIL\ufffals\ufffb", "<U+FFF9>EVIL<U+FFFA>ls<U+FFFB>", warnHidden},
		{"object replacement", "EVIL\ufffc", "EVIL<U+FFFC>", warnHidden},
		{"lone surrogate, as JSON decodes it", "EVIL\ufffd", "EVIL<U+FFFD>", warnHidden},
		{"surrogate in UTF-8", "EVIL\xed\xa0\x80", "EVIL<0xED><0xA0><0x80>", warnBytes},
		{"overlong slash", "EVIL\xc0\xaf", "EVIL<0xC0><0xAF>", warnBytes},
		{"cut character", "EVIL\xe2\x80", "EVIL<0xE2><0x80>", warnBytes},
		{"no character at all", "EVIL\xff\xfe", "EVIL<0xFF><0xFE>", warnBytes},
		{"marks on a letter", "EVIL" + strings.Repeat("\u0336", 200), "<U+0336><U+0336>", warnHidden},
		{"marks of all heights", "E\u0301\u0302\u0489\u20dd\u0316VIL EVIL", "<U+0489><U+20DD><U+0316>VIL", warnHidden},
		{"mark on the bar", "\u0338EVIL", "<U+0338>EVIL", warnHidden},
		{"mark on a blank", "EVIL \u0338", "EVIL <U+0338>", warnHidden},
		{"Cyrillic letters in a word", "cat EVIL/\u0440asswd", "EVIL/\u0440asswd", warnLookalikes},
		{"a word of Cyrillic letters", "EVIL \u0441\u043e\u0440\u0443", "EVIL \u0441\u043e\u0440\u0443", warnLookalikes},
		{"Greek letters in a word", "EVIL l\u03bf", "EVIL l\u03bf", warnLookalikes},
		{"full-width letters", "EVIL \uff4c\uff53", "EVIL \uff4c\uff53", warnLookalikes},
		{"mathematical letters", "EVIL \U0001d4f5\U0001d4fc", "EVIL \U0001d4f5\U0001d4fc", warnLookalikes},
		{"Hebrew letters", "EVIL \u05d0\u05d1/1", "EVIL \u05d0\u05d1/1", warnOrder},
		{"a prompt", "EVIL\n  Run it?  [y]1 once  [n]2 no  [?] y\nEVIL", "  Run it?  [y]1 once  [n]2 no  [?] y", warnImitation},
		{"a question", "EVIL\n  ls wants to run   (it only reads)\n     │ EVIL", "  ls wants to run   (it only reads)", warnImitation},
		{"a bar", "ls\n     │ EVIL", "     │ EVIL", warnImitation},
		{"dots", "ls\n     : EVIL", "     : EVIL", warnImitation},
		{"a warning", "ls\n     ! it holds no EVIL", "     ! it holds no EVIL", warnImitation},
		{"a fold", "ls\n     ~ 900 of 918 rows are folded, 0 of them with text EVIL", "     ~ 900 of 918 rows are folded, 0 of them with text EVIL", warnImitation},
		{"a count of lines", "ls\n     ~ the line above 12 times more EVIL", "     ~ the line above 12 times more EVIL", warnImitation},
		{"a message", "ls\nstockade: a call of EVIL was allowed", "stockade: a call of EVIL was allowed", warnImitation},
		{"a mark for a tab", "EVIL<tab>", "EVIL<U+003C>tab>", warnImitation},
		{"a mark for blanks", "EVIL<12 blanks>", "EVIL<U+003C>12 blanks>", warnImitation},
		{"a mark for a character", "EVIL<U+0020>", "EVIL<U+003C>U+0020>", warnImitation},
		{"a mark for a byte", "EVIL<0x20>", "EVIL<U+003C>0x20>", warnImitation},
		{"a mark for a line end", "EVIL<newline>", "EVIL<U+003C>newline>", warnImitation},
		{"a tab", "ls\tEVIL", "ls<tab>EVIL", ""},
		{"many tabs", "ls" + strings.Repeat("\t", 50) + "EVIL", "ls<50 blanks>EVIL", ""},
		{"blanks up to the next row", "ls" + strings.Repeat(" ", 200) + "EVIL", "ls<200 blanks>EVIL", ""},
		{"blanks at the end", "EVIL   ", "EVIL", ""},
		{"a very long line", strings.Repeat("x", 1000) + "EVIL", "xEVIL", ""},
		{"wide characters at the edge", strings.Repeat("\u4e16", 300) + "EVIL", "\u4e16EVIL", ""},
		{"wide characters at an odd edge", "x" + strings.Repeat("\u4e16", 300) + "EVIL", "\u4e16EVIL", ""},
		{"characters of open width", strings.Repeat("\u00a7", 300) + "EVIL", "\u00a7EVIL", ""},
		{"marks at the edge", strings.Repeat("e\u0301", 300) + "EVIL", "e\u0301EVIL", ""},
		{"a payload behind empty lines", "ls" + strings.Repeat("\n", 500) + "EVIL", "EVIL", ""},
		{"a payload behind blanks", "ls" + strings.Repeat(" ", 500) + "EVIL", "ls<500 blanks>EVIL", ""},
	}
	for _, r := range []rune{
		0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069, 0x200E, 0x200F, 0x061C, // change the order
		0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x2061, 0x2062, 0x2063, 0x2064, 0x206A, 0x206F, // show nothing
	} {
		code := fmt.Sprintf("U+%04X", r)
		out = append(out, Vector{code, "EVIL" + string(r) + "sl", "EVIL<" + code + ">sl", warnHidden})
	}
	return out
}
