package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

// encoded returns images of a size by format, as the standard library encodes them. It
// cannot encode WebP.
func encoded(t testing.TB, width, height int) map[string][]byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, width, height), palette.Plan9)
	for i := range img.Pix {
		img.Pix[i] = byte(i * 7)
	}
	var p, j, g bytes.Buffer
	if err := errors.Join(png.Encode(&p, img), jpeg.Encode(&j, img, nil), gif.Encode(&g, img, nil)); err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"image/png": p.Bytes(), "image/jpeg": j.Bytes(), "image/gif": g.Bytes()}
}

// riff returns a WebP image with one chunk.
func riff(kind, body string) []byte {
	out := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(4+8+len(body)))
	out = append(out, "WEBP"+kind...)
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(body))), body...)
}

func TestLook(t *testing.T) {
	type test struct {
		data []byte
		want string
	}
	tests := map[string]test{
		"WebP, lossy":         {riff("VP8 ", "\x00\x00\x00\x9d\x01\x2a\x80\x02\xe0\x41"), "image/webp, 640x480"},
		"WebP, lossless":      {riff("VP8L", "\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07"), "image/webp, 1x1"},
		"WebP, extended":      {riff("VP8X", "\x00\x00\x00\x00\x7f\x02\x00\xdf\x01\x00"), "image/webp, 640x480"},
		"an animation":        {animated(t), "image/gif, 3x3"},
		"bytes behind an end": {append(encoded(t, 2, 2)["image/png"], "<script>"...), "image/png, 2x2"},
	}
	for mime, data := range encoded(t, 640, 480) {
		tests[mime] = test{data, mime + ", 640x480"}
	}
	for mime, data := range encoded(t, 1, 1) {
		tests["the smallest "+mime] = test{data, mime + ", 1x1"}
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if info, err := Look(tt.data); err != nil || info.String() != tt.want {
				t.Errorf("got %v, %v, want %s", info, err, tt.want)
			}
		})
	}
}

// animated returns a GIF of three frames with their own colors and comments.
func animated(t *testing.T) []byte {
	t.Helper()
	frame := image.NewPaletted(image.Rect(0, 0, 3, 3), palette.WebSafe)
	var out bytes.Buffer
	if err := gif.EncodeAll(&out, &gif.GIF{Image: []*image.Paletted{frame, frame, frame}, Delay: []int{1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestWhatIsNoImage(t *testing.T) {
	pngs := encoded(t, 4, 4)["image/png"]
	sized := func(width, height uint32) []byte {
		data := bytes.Clone(pngs)
		binary.BigEndian.PutUint32(data[16:], width)
		binary.BigEndian.PutUint32(data[20:], height)
		return data
	}
	tests := map[string]struct {
		data []byte
		want error
	}{
		"nothing":                      {nil, ErrUnknown},
		"text":                         {[]byte("hello"), ErrUnknown},
		"an SVG":                       {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), ErrUnknown},
		"a BMP":                        {[]byte("BM\x00\x00\x00\x00"), ErrUnknown},
		"a sound in RIFF":              {[]byte("RIFF\x24\x00\x00\x00WAVEfmt "), ErrUnknown},
		"a mark and nothing behind it": {[]byte("\x89PNG\r\n\x1a\n"), ErrBroken},
		"a script that begins as GIF":  {[]byte("GIF89a/*aaaaaaaaaaaaaaaaaaaa*/=1;"), ErrBroken},
		"a header of 60000x60000":      {sized(60000, 60000), ErrLarge},
		"one pixel too wide":           {sized(MaxSide+1, 1), ErrLarge},
		"no width":                     {sized(0, 4), ErrBroken},
		"a negative height":            {sized(4, 1<<31), ErrBroken},
		"10 MB":                        {append(bytes.Clone(pngs), make([]byte, 10_000_000)...), ErrLarge},
		"a chunk longer than the file": {append(pngs[:8:8], "\xff\xff\xff\xffIHDR\x00\x00\x00\x01\x00\x00\x00\x01aaaaaaaaaaaaaaaa"...), ErrBroken},
		"a JPEG without a frame":       {[]byte("\xff\xd8\xff\xda\x00\x02\xff\xd9"), ErrBroken},
		"a JPEG of fill bytes":         {[]byte("\xff\xd8" + strings.Repeat("\xff", 1000)), ErrBroken},
		"a segment of no length":       {[]byte("\xff\xd8\xff\xe0\x00\x00\xff\xd9"), ErrBroken},
		"a WebP of another kind":       {riff("ABCD", strings.Repeat("a", 20)), ErrBroken},
		"a WebP that says it is more":  {append([]byte("RIFF\xff\xff\xff\xff"), riff("VP8X", "\x00\x00\x00\x00\x7f\x02\x00\xdf\x01\x00")[8:]...), ErrBroken},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if info, err := Look(tt.data); !errors.Is(err, tt.want) {
				t.Errorf("got %v, %v, want %v", info, err, tt.want)
			}
		})
	}
}

func TestWhatIsCutShortIsBroken(t *testing.T) {
	images := encoded(t, 40, 30)
	images["image/webp"] = riff("VP8L", "\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07")
	for mime, data := range images {
		for n := HeadBytes; n < len(data)-2; n++ { // the sums and lengths at the very end are not looked at
			if _, err := Look(data[:n]); !errors.Is(err, ErrBroken) {
				t.Fatalf("%s: %d of %d bytes: %v", mime, n, len(data), err)
			}
		}
		if got := Mime(data[:HeadBytes]); got != mime {
			t.Errorf("%s begins as %q", mime, got)
		}
	}
}

func FuzzLook(f *testing.F) {
	for _, data := range encoded(f, 5, 5) {
		f.Add(data)
	}
	f.Add(riff("VP8 ", "\x00\x00\x00\x9d\x01\x2a\x80\x02\xe0\x41"))
	f.Add(riff("VP8X", "\x00\x00\x00\x00\x7f\x02\x00\xdf\x01\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		info, err := Look(data)
		if err == nil && (info.Mime != Mime(data) || info.Width < 1 || info.Height < 1 || max(info.Width, info.Height) > MaxSide || len(data) > MaxBytes) {
			t.Errorf("%v is an image", info)
		}
	})
}
