package linear_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stockade-dev/stockade/host/sandbox/linear"
)

func newImage(t testing.TB, pages int) *linear.Image {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	content := make([]byte, pages*linear.PageSize)
	for i := range content {
		if i/linear.PageSize%3 != 1 { // a third are zeros
			content[i] = byte(r.Uint32())
		}
	}
	image, err := linear.NewImage(content)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(image.Close)
	return image
}

// The reference Linux has all that the kernel offers.
func TestAllMethodsWorkOnLinux(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	want := []linear.Method{linear.MethodScan, linear.MethodPagemap, linear.MethodDrop, linear.MethodCopy}
	if got := linear.Methods(); !slices.Equal(got, want) {
		t.Errorf("%v work, want %v", got, want)
	}
}

func TestReset(t *testing.T) {
	const pages = 2000
	image := newImage(t, pages)
	for _, method := range linear.Methods() {
		t.Run(string(method), func(t *testing.T) {
			m, err := image.MapFor(method, uint64(3000*linear.PageSize))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			other, err := image.MapFor(method, uint64(3000*linear.PageSize))
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			other.Bytes()[7] ^= 0xff
			r := rand.New(rand.NewPCG(3, 4))
			// One page, neighbours, more places than fit into one answer of the
			// kernel, and more pages than are worth copying.
			for _, step := range []struct{ every, n int }{{1, 0}, {1, 1}, {1, 40}, {2, 300}, {3, 600}, {1, pages}, {500, 4}} {
				changed := map[int]bool{}
				for i := range step.n {
					page := i * step.every % pages
					changed[page] = true
					m.Bytes()[page*linear.PageSize+r.IntN(linear.PageSize)] ^= byte(1 + r.IntN(255))
				}
				if len(changed) > 0 && m.Verify() == nil {
					t.Fatal("the changes are not seen")
				}
				n, err := m.Reset()
				if err != nil {
					t.Fatal(err)
				}
				if err := m.Verify(); err != nil {
					t.Errorf("%d pages, every %d.: %v", step.n, step.every, err)
				}
				if (method == linear.MethodScan || method == linear.MethodPagemap) && n < len(changed) {
					t.Errorf("%d pages were put back, %d were changed", n, len(changed))
				}
			}
			if other.Verify() == nil {
				t.Error("another memory of the image was reset too")
			}
		})
	}
}

// Bytes beyond the image are fresh, and no byte of the image can be changed.
func TestMapping(t *testing.T) {
	image := newImage(t, 3)
	m, err := image.Map(uint64(5 * linear.PageSize))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if len(m.Bytes()) != 5*linear.PageSize || slices.Max(m.Bytes()[3*linear.PageSize:]) != 0 {
		t.Errorf("%d bytes, and not zero beyond the image", len(m.Bytes()))
	}
	before := image.Bytes()[0]
	m.Bytes()[0]++
	if image.Bytes()[0] != before {
		t.Error("the image has changed")
	}
	if _, err := image.Map(uint64(2 * linear.PageSize)); err == nil {
		t.Error("it was mapped into less room than it needs")
	}
	if _, err := linear.NewImage(nil); err == nil {
		t.Error("an image of nothing")
	}
	odd, err := linear.NewImage([]byte{1})
	if err != nil || len(odd.Bytes()) != linear.PageSize || odd.Bytes()[0] != 1 {
		t.Fatalf("an image of one byte: %v", err)
	}
	odd.Close()
}

// Benchmarks of resetting the pages that a call of a small Go tool changes of its 4 MB, and
// of the alternatives.
func BenchmarkReset(b *testing.B) {
	image := newImage(b, 1000)
	for _, method := range linear.Methods() {
		b.Run(string(method), func(b *testing.B) {
			m, err := image.MapFor(method, uint64(1000*linear.PageSize))
			if err != nil {
				b.Fatal(err)
			}
			defer m.Close()
			for b.Loop() {
				for i := range 50 {
					m.Bytes()[i*17*linear.PageSize]++
				}
				if _, err := m.Reset(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("nothing changed", func(b *testing.B) {
		m, err := image.Map(uint64(1000 * linear.PageSize))
		if err != nil {
			b.Fatal(err)
		}
		defer m.Close()
		for b.Loop() {
			if _, err := m.Reset(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A written image has the same content, and its zeros take no disk space.
func TestWrite(t *testing.T) {
	const pages = 300
	content := make([]byte, pages*linear.PageSize)
	for _, page := range []int{3, 4, 200} {
		content[page*linear.PageSize+1] = byte(page)
	}
	image, err := linear.NewImage(content)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	f, err := os.Create(filepath.Join(t.TempDir(), "image"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := image.Write(f); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes that differ were written, %v", len(got), err)
	}
	if taken := onDisk(t, f); taken > 20*int64(linear.PageSize) {
		t.Errorf("it takes %d bytes of the disk", taken)
	}
}
