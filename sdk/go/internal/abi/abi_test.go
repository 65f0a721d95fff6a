package abi

import (
	"bytes"
	"strings"
	"testing"
)

func TestReallocKeepsEverySize(t *testing.T) {
	for size := uint32(1); size <= 64; size++ {
		want := bytes.Repeat([]byte{byte(size)}, int(size))
		ptr := Realloc(0, 0, 1, size)
		copy(blockAt(ptr, size), want)
		if got := Take(ptr, size); !bytes.Equal(got, want) {
			t.Errorf("block of %d bytes came back as %x", size, got)
		}
	}
	if n := Live(); n != 0 {
		t.Errorf("%d blocks left", n)
	}
}

func TestReallocMovesTheOldBlock(t *testing.T) {
	tests := map[string]struct{ oldSize, size uint32 }{
		"grow":         {3, 100},
		"shrink":       {100, 3},
		"same size":    {8, 8},
		"from nothing": {0, 5},
		"to nothing":   {5, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			old := Realloc(0, 0, 4, tt.oldSize)
			for i, b := 0, blockAt(old, tt.oldSize); i < len(b); i++ {
				b[i] = byte(i + 1)
			}
			ptr := Realloc(old, tt.oldSize, 4, tt.size)
			got := Take(ptr, tt.size)
			for i := range min(tt.oldSize, tt.size) {
				if got[i] != byte(i+1) {
					t.Fatalf("byte %d is %d", i, got[i])
				}
			}
			if n := Live(); n != 0 {
				t.Errorf("%d blocks left", n)
			}
		})
	}
}

func TestReallocHonoursAlignment(t *testing.T) {
	for _, align := range []uint32{1, 2, 4, 8} {
		for size := uint32(0); size < 20; size++ {
			ptr := Realloc(0, 0, align, size)
			if ptr == 0 || ptr%align != 0 {
				t.Errorf("realloc(align %d, size %d) = %#x", align, size, ptr)
			}
			Take(ptr, size)
		}
	}
	for _, align := range []uint32{0, 3, 16} {
		mustPanic(t, "alignment", func() { Realloc(0, 0, align, 1) })
	}
}

func TestForeignPointersAreRefused(t *testing.T) {
	ptr := Realloc(0, 0, 1, 4)
	defer Take(ptr, 4)
	mustPanic(t, "the host passed", func() { Take(ptr, 5) })
	mustPanic(t, "the host passed", func() { Take(ptr+1, 1) })
	mustPanic(t, "the host passed", func() { Realloc(12345, 1, 1, 1) })
	if b := Take(0xdeadbeef, 0); b != nil {
		t.Errorf("an empty list is %v", b)
	}
}

func TestFrameRoundTrip(t *testing.T) {
	var f Frame
	ptr, r := f.Area(40)
	if ptr%8 != 0 {
		t.Errorf("area at %#x", ptr)
	}
	r.SetCase(0, 3)
	r.SetU16(2, 0xfffe)
	r.SetU32(4, 1<<31)
	r.SetU64(8, 1<<63)
	r.SetPair(16)(f.Text("grüße"))
	r.SetPair(24)(f.Bytes(nil))
	r.SetU32(32, f.Texts([]string{"a", "", "ccc", "dd"}))
	r.SetU32(36, 2)

	got := Record(blockAt(ptr, 40))
	if got.Case(0) != 3 || !got.Bool(0) || got.U16(2) != 0xfffe || got.U32(4) != 1<<31 || got.U64(8) != 1<<63 {
		t.Errorf("numbers came back as %x", got)
	}
	if s := got.Text(16); s != "grüße" {
		t.Errorf("text is %q", s)
	}
	if b := got.Bytes(24); b != nil {
		t.Errorf("empty list is %x", b)
	}
	if s := strings.Join(got.Texts(32, 2), "|"); s != "a||ccc|dd" {
		t.Errorf("list of pairs is %q", s)
	}
	f.Free()
	if n := Live(); n != 0 {
		t.Errorf("%d blocks left", n)
	}
}

func TestReturnedFrameLivesUntilPost(t *testing.T) {
	f := new(Frame)
	ptr, r := f.Area(8)
	r.SetPair(0)(f.Text("result"))
	f.Return(ptr)
	if n := Live(); n != 2 {
		t.Fatalf("%d blocks before post", n)
	}
	Post(ptr)
	Post(ptr) // a second time is harmless
	if n := Live(); n != 0 {
		t.Errorf("%d blocks after post", n)
	}
}

func TestHugeListIsRefused(t *testing.T) {
	var f Frame
	defer f.Free()
	_, r := f.Area(8)
	r.SetPair(0)(8, 1<<31)
	mustPanic(t, "cannot fit", func() { r.Texts(0, 2) })
}

func mustPanic(t *testing.T, want string, fn func()) {
	t.Helper()
	defer func() {
		t.Helper()
		text, _ := recover().(string)
		if !strings.Contains(text, want) {
			t.Errorf("panic %q does not say %q", text, want)
		}
	}()
	fn()
}
