package humanize

import (
	"strings"
	"testing"
	"time"
)

func TestNumbersAreShort(t *testing.T) {
	for want, got := range map[string]string{
		"950 B": Bytes(950), "1.5 KiB": Bytes(1536), "2.0 GiB": Bytes(2 << 30),
		"999": Count(999), "12.3 k": Count(12_345), "4.5 M": Count(4_500_000),
		"7": Exact(7), "2,310": Exact(2310), "1,234,567": Exact(1234567), "-123": Exact(-123),
		"12 ms": Duration(12 * time.Millisecond), "3.4 s": Duration(3499 * time.Millisecond), "59.9 s": Duration(time.Minute - 1), "2 min 5 s": Duration(125 * time.Second),
		"$0.00": Dollars(0), "$0.0042": Dollars(0.0042), "$0.31": Dollars(0.31), "$12.50": Dollars(12.5), "$0.000010": Dollars(0.00001),
		"1 call": Plural(1, "call"), "2 calls": Plural(2, "call"), "abc ...": Clip("abcd", 3), "äöü": Clip("äöü", 3),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTextOfOthersIsReadableAndHarmless(t *testing.T) {
	for want, got := range map[string]string{
		"file_read": ToolName("file_read"), `"a b\n\u202e"`: ToolName("a b\n\u202e"), `"` + strings.Repeat("a", 59) + `..."`: ToolName(strings.Repeat("a", 1000)),
		`{"a":"<é>"}`: JSON([]byte(`{ "a": "\u003c\u00e9\u003e" }`)), `12345678901234567890`: JSON([]byte(`12345678901234567890`)), `{"a"`: JSON([]byte(`{"a"`)), `1 2`: JSON([]byte(`1 2`)),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
