package charset

import "testing"

func FuzzEncoding(f *testing.F) {
	for _, seed := range []string{
		"", "abc\n", "\uFEFFa", "\xff\xfea\x00", "\xfe\xff\x00a", "\xff\xfe\x00\x00", "a\x00b\x00c\x00\xfc\x00\r\x00\n\x00", "\x00a\x00b\xd8\x3d\xde\x00\x00\n",
		"gr\xfc\xdfe", "ü\xff", "a\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		e := Of([]byte(raw)).Guess([]byte(raw))
		if e.Form == Binary || e.Form == UTF32 {
			return
		}
		text, ok := e.Decode([]byte(raw))
		if !ok {
			return
		}
		if back, lacks, at := e.Encode(text); string(back) != raw {
			t.Fatalf("%v: %q became %q (%U at %d)", e, raw, back, lacks, at)
		}
	})
}
