package wasi

import "testing"

func TestNamesThatAFileSystemTakesForTheSame(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"secret", "secret", true},
		{"secret", "SECRET", true},
		{"secret", "secrets", false},
		{"secret", "", false},
		{"caf\u00e9", "cafe\u0301", true},
		{"caf\u00e9", "CAFE\u0301", true},
		{"caf\u00e9", "cafe", false},
		{"\u1e69", "s\u0307\u0323", true},
		{"k", "\u212a", true},
		{"s", "\u017f", true},
		{"secret", "sec\u200cret", true},
		{"secret", "\ufeffsecret", true},
		{"secret", "secret\ufe0f", true},
		{"secret", "s\u0435cret", false}, // a Cyrillic letter: another file everywhere
	} {
		if got := sameName(tc.a, tc.b); got != tc.same {
			t.Errorf("%+q and %+q: %v", tc.a, tc.b, got)
		}
	}
}
