package repo

import (
	"bytes"
	"compress/zlib"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// readerOf returns a reader of data through a file of pages.
func readerOf(t testing.TB, data []byte) *reader {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
	var p pages
	f, err := p.open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.f.Close() })
	return &reader{f: f}
}

func TestInflateLikeZlib(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 18))
	var z inflater
	for n := range 66 {
		data := make([]byte, rnd.IntN(1<<rnd.IntN(18)))
		letters := 1 + rnd.IntN(256)
		for i := range data {
			data[i] = byte(rnd.IntN(letters))
			if i > 100 && rnd.IntN(50) == 0 {
				copy(data[i:], data[rnd.IntN(i):i])
			}
		}
		var out bytes.Buffer
		w, _ := zlib.NewWriterLevel(&out, n%11-2)
		_, _ = w.Write(data)
		_ = w.Close()
		packed := append(out.Bytes(), "what comes next"...)
		got := make([]byte, len(data))
		if err := z.inflate(readerOf(t, packed), got, false); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%d bytes of %d letters, level %d: %v", len(data), letters, n%11-2, err)
		}
		if len(data) == 0 {
			continue
		}
		if err := z.inflate(readerOf(t, packed), make([]byte, len(data)-1), false); err != errLonger {
			t.Errorf("one byte too few: %v", err)
		}
		if err := z.inflate(readerOf(t, packed), got[:len(data)/2], true); err != nil || !bytes.Equal(got, data) {
			t.Errorf("the first half: %v", err)
		}
		if err := z.inflate(readerOf(t, packed), make([]byte, len(data)+1), false); err == nil || !strings.Contains(err.Error(), "shorter") {
			t.Errorf("one byte too many: %v", err)
		}
		if err := z.inflate(readerOf(t, out.Bytes()[:rnd.IntN(out.Len())]), got, false); err == nil {
			t.Error("what is cut off is whole")
		}
	}
}

// FuzzInflate compares the results for damaged data with those of compress/zlib.
func FuzzInflate(f *testing.F) {
	for _, text := range []string{"", "a", strings.Repeat("abc", 100), "the quick brown fox jumps over the lazy dog"} {
		for level := -2; level < 10; level++ {
			var out bytes.Buffer
			w, _ := zlib.NewWriterLevel(&out, level)
			_, _ = io.WriteString(w, text)
			_ = w.Close()
			f.Add(out.Bytes())
		}
	}
	var own inflater
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 1 << 20
		var want []byte
		z, err := zlib.NewReader(bytes.NewReader(data))
		if err == nil {
			want, err = io.ReadAll(io.LimitReader(z, most))
		}
		if len(want) == most {
			return
		}
		got := make([]byte, len(want))
		gotErr := own.inflate(readerOf(t, data), got, false)
		if (err == nil) != (gotErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Errorf("%v and %d bytes; zlib says %v and %d", gotErr, len(got), err, len(want))
		}
	})
}
