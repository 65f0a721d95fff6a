package abi

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
	"github.com/stockade-dev/stockade/sdk/go/picture"
)

// TestOfImagesNoMoreIsCopiedThanAResultMayHave has lists of images at the same address, so
// that a guest can name more than it has.
func TestOfImagesNoMoreIsCopiedThanAResultMayHave(t *testing.T) {
	const list, data = 24, 1 << 16
	tests := map[string]struct {
		sizes  []uint32
		copied int
	}{
		"one":                        {[]uint32{100}, 1},
		"an empty one":               {[]uint32{0}, 0},
		"as many as there may be":    {[]uint32{1, 2, 3, 4, 5, 6, 7, 8}, 8},
		"1000":                       {slices.Repeat([]uint32{10}, 1000), 8},
		"the largest":                {[]uint32{picture.MaxBytes}, 1},
		"one byte more":              {[]uint32{picture.MaxBytes + 1}, 0},
		"two large ones and a small": {[]uint32{picture.MaxBytes, picture.MaxBytes, 1}, 2},
		"small behind a large":       {[]uint32{1, 10 << 20, 1}, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			mem := bytes.Repeat([]byte("x"), 16<<20)
			image := words(0, list, uint32(len(tt.sizes)), 0, 0, 0)
			for _, n := range tt.sizes {
				image = append(image, words(wasmtest.ContentImage, data, 9, data, n, 0, 0, 0, 0)...)
			}
			copy(mem, image)
			out, _, err := LiftCall(memoryOf(mem), 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			copied := 0
			for i, c := range out.Content {
				if c.Data != nil {
					copied++
					if len(c.Data) != int(tt.sizes[i]) || &c.Data[0] == &mem[data] {
						t.Errorf("image %d has %d of %d bytes, or is the guest's", i, len(c.Data), tt.sizes[i])
					}
				}
			}
			if copied != tt.copied || len(out.Content) != len(tt.sizes) {
				t.Errorf("%d of %d were copied, want %d", copied, len(out.Content), tt.copied)
			}
		})
	}
}

func TestAnImageOutsideOfMemoryIsAFault(t *testing.T) {
	for _, n := range []uint32{1 << 20, MaxResultBytes + 1, 0xffff_ffff} {
		mem := make([]byte, 1<<17)
		copy(mem, words(0, 24, 1, 0, 0, 0, wasmtest.ContentImage, 0, 1, 64, n, 0, 0, 0, 0))
		if _, _, err := LiftCall(memoryOf(mem), 0, nil); err == nil {
			t.Errorf("%d bytes were lifted", n)
		}
	}
}
