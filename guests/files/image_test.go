package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/sdk/go/picture"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// drawing is a PNG of a size.
func drawing(t *testing.T, width, height int) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewRGBA(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestFileReadOfAnImage(t *testing.T) {
	img := drawing(t, 64, 48)
	tree(t, map[string]string{"a.png": string(img), "not.txt": string(img), "a.svg": "<svg/>\n", "poly.gif": "GIF89a=1;\nalert()\n"})
	for _, name := range []string{"a.png", "not.txt"} {
		out := works(t, fileRead, readArgs{Path: name, Offset: 1, Limit: 10})
		sum := sha256.Sum256(img)
		if out.Output != "image/png, 64x48, "+humanSize(int64(len(img))) || out.SHA256 != hex.EncodeToString(sum[:]) || out.Lines != 0 {
			t.Errorf("%s: %+v", name, out)
		}
		if got := out.Images(); len(got) != 1 || got[0].Mime != "image/png" || !bytes.Equal(got[0].Data, img) {
			t.Errorf("%s: %d images", name, len(got))
		}
	}
	for name, want := range map[string]string{"a.svg": "1: <svg/>", "poly.gif": "1: GIF89a=1;\n2: alert()"} {
		if out := works(t, fileRead, readArgs{Path: name, Offset: 1, Limit: 10}); out.Output != want || out.Images() != nil {
			t.Errorf("%s is text, and comes as %+v", name, out)
		}
	}
}

func TestFileReadOfAnImageThatNoModelTakes(t *testing.T) {
	img := drawing(t, 64, 48)
	wide := bytes.Clone(img)
	binary.BigEndian.PutUint32(wide[16:], 60000)
	binary.BigEndian.PutUint32(wide[20:], 60000)
	tree(t, map[string]string{
		"wide.png": string(wide), "cut.png": string(img[:len(img)/2]), "mark.png": string(img[:16]),
		"most.png": string(img) + strings.Repeat("\x00", picture.MaxBytes-len(img)), "more.png": string(img) + strings.Repeat("\x00", picture.MaxBytes+1-len(img)),
		"other.bmp": "BM\x00\x00", "dir.png/f": "",
	})
	for name, want := range map[string][]string{
		"wide.png":  {"IMAGE_TOO_LARGE", "wide.png", "60000x60000"},
		"more.png":  {"IMAGE_TOO_LARGE", "3932161 bytes"},
		"cut.png":   {"IMAGE_BROKEN", "cut short"},
		"mark.png":  {"IMAGE_BROKEN", "mark.png"},
		"other.bmp": {"BINARY_FILE", "is a binary file"},
	} {
		in := readArgs{Path: name, Offset: 1, Limit: 10}
		fails(t, fileRead, in, tool.CodeParse, want[1:]...)
		if _, err := fileRead(t.Context(), in); tool.CodeOf(err) != want[0] {
			t.Errorf("%s: the code is %q", name, tool.CodeOf(err))
		}
	}
	if out := works(t, fileRead, readArgs{Path: "most.png", Offset: 1, Limit: 10}); len(out.Images()) != 1 {
		t.Errorf("the largest: %+v", out)
	}
	if out := works(t, fileRead, readArgs{Path: "dir.png", Offset: 1, Limit: 10}); out.Images() != nil || out.Count != 1 {
		t.Errorf("a directory: %+v", out)
	}
}
