package format

import (
	"bytes"
	"strings"
	"testing"
)

// No bytes make a parser panic, or read beyond their end.
func FuzzFormats(f *testing.F) {
	for _, seed := range []string{
		"", "\x95\x0a\x81\x00", "\x02\x02\x02ab", "100644 a\x00" + strings.Repeat("x", 20), "blob 3\x00abc",
		"DIRC\x00\x00\x00\x04\x00\x00\x00\x01" + strings.Repeat("\x00", 61) + "\x01\x00a\x00" + strings.Repeat("\x00", 20),
		"\x00" + "1 1\n" + strings.Repeat("x", 20) + "d\x000 0\n" + strings.Repeat("y", 20), "refs/heads/a", ".GIT./x",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, size := range []int{20, 32} {
			if h, ok := ParseObjectHeader(data, size); ok && h.Len > len(data) {
				t.Errorf("a head of %d bytes in %d", h.Len, len(data))
			}
			for rest, ok := data, true; ok && len(rest) > 0; {
				_, _, _, rest, ok = TreeEntry(rest, size)
			}
			_, _ = IndexEntries(data, size, func(e *IndexEntry) error {
				if len(e.ID) != size || len(e.Name) > MaxName {
					t.Errorf("an entry %q %x", e.Name, e.ID)
				}
				return nil
			})
			_ = CachedTrees(data, size, func(dir string, id []byte, _ int) bool {
				return len(dir) <= MaxName+1 && (id == nil || len(id) == size)
			})
		}
		if _, used := Offset(data); used > len(data) {
			t.Errorf("a number of %d bytes in %d", used, len(data))
		}
		if out, size, ok := ApplyDelta(data[:len(data)/2], data[len(data)/2:], 1<<10); ok && (uint64(len(out)) != size || size > 1<<10) {
			t.Errorf("%d bytes instead of %d", len(out), size)
		}
		if _, _, begin, ok := LooseHeader(data); ok && begin > len(data) {
			t.Errorf("the content begins at %d of %d", begin, len(data))
		}
		if name := string(data); IsRef(name) && bytes.Contains(data, []byte("..")) || IsPath(name) && strings.HasPrefix(name, "/") {
			t.Errorf("%q leads elsewhere", name)
		}
	})
}
