package sandbox_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
	"github.com/stockade-dev/stockade/sdk/go/picture"
)

// returned is an image as a guest returns it.
type returned struct {
	mime string
	data []byte
}

// returnsImages returns a module that returns images, and a structured value if there is one.
func returnsImages(structured string, images ...returned) w.ToolOptions {
	list := dataAt + uint32(len(images))*w.ContentBytes
	var contents, data []byte
	at := func(b []byte) []byte {
		place := le32(list+uint32(len(data)), uint32(len(b)))
		data = append(data, b...)
		return place
	}
	for _, i := range images {
		contents = append(contents, code(le32(w.ContentImage), at([]byte(i.mime)), at(i.data), le32(0, 0, 0, 0))...)
	}
	has := uint32(min(len(structured), 1))
	place := at([]byte(structured))
	return w.ToolOptions{
		MemoryMin: (dataAt+len(contents)+len(data))>>16 + 1,
		Data:      []w.Segment{{Offset: dataAt, Bytes: append(contents, data...)}},
		Call:      w.ReturnWords(w.ResultOK, dataAt, uint32(len(images)), has, binary.LittleEndian.Uint32(place), uint32(len(structured))),
	}
}

func TestImagesOfGuests(t *testing.T) {
	var drawn bytes.Buffer
	if err := png.Encode(&drawn, image.NewGray(image.Rect(0, 0, 64, 48))); err != nil {
		t.Fatal(err)
	}
	good := drawn.Bytes()
	huge := bytes.Clone(good)
	binary.BigEndian.PutUint32(huge[16:], 60000)
	big := append(bytes.Clone(good), make([]byte, picture.MaxBytes-len(good))...)
	box := newBox(t, sandbox.Options{Interpreter: true})
	for name, c := range map[string]struct {
		structured string
		images     []returned
		want       int
		output     string
		note       []string // parts of the note; nil: there is none
	}{
		"one beside a value":     {`{"n":1}`, []returned{{"image/png", good}}, 1, `{"n":1}`, nil},
		"one and nothing else":   {"", []returned{{"image/png", good}}, 1, `{"output":"[image image/png, 64x48]"}`, nil},
		"the mime lies":          {`{}`, []returned{{"image/jpeg", good}}, 0, `{}`, []string{`image 1`, `it says that it is "image/jpeg" and is image/png`}},
		"the header lies":        {`{}`, []returned{{"image/png", huge}}, 0, `{}`, []string{"60000x48"}},
		"cut short":              {`{}`, []returned{{"image/png", good[:len(good)-20]}}, 0, `{}`, []string{"cut short"}},
		"an SVG":                 {"", []returned{{"image/svg+xml", []byte("<svg/>")}}, 0, `{"output":"[image image/svg+xml]"}`, []string{"not a PNG"}},
		"a page":                 {`{}`, []returned{{"image/png", []byte("<html>")}}, 0, `{}`, []string{"not a PNG"}},
		"empty":                  {`{}`, []returned{{"image/png", nil}}, 0, `{}`, []string{"it is empty"}},
		"as large as may be":     {`{}`, []returned{{"image/png", big}}, 1, `{}`, nil},
		"10 MB":                  {`{}`, []returned{{"image/png", make([]byte, 10_000_000)}}, 0, `{}`, []string{"too large"}},
		"good ones beside bad":   {`{}`, []returned{{"image/png", []byte("x")}, {"image/png", good}, {"image/png", good[:9]}}, 1, `{}`, []string{"image 1", "image 3"}},
		"1000":                   {`{}`, slices.Repeat([]returned{{"image/png", good}}, 1000), 8, `{}`, []string{"image 9", "image 11", "and so were 989 more"}},
		"a mime of many lines":   {`{}`, []returned{{"a\n\x1b[31m" + strings.Repeat("x", 10_000), good}}, 0, `{}`, []string{`"a\n\x1b[31mxxx`}},
		"one that is of no type": {`{}`, []returned{{"", good}}, 0, `{}`, []string{`says that it is ""`}},
	} {
		t.Run(name, func(t *testing.T) {
			r := granted(t, probe(returnsImages(c.structured, c.images...)), ask{}).mustRun(t, box)
			if r.Err != nil || string(r.Output) != c.output || len(r.Images) != c.want {
				t.Fatalf("got %s, %d images, %v", r.Output, len(r.Images), r.Err)
			}
			for _, i := range r.Images {
				if i.String() != "image/png, 64x48" || !bytes.HasPrefix(i.Data, good) {
					t.Errorf("an image is %v of %d bytes", i, len(i.Data))
				}
			}
			if (r.Note == "") != (c.note == nil) || len(r.Note) > 1000 || strings.ContainsRune(r.Note, '\x1b') {
				t.Errorf("the note is %q", r.Note)
			}
			for _, want := range c.note {
				if !strings.Contains(r.Note, want) {
					t.Errorf("the note %q does not say %q", r.Note, want)
				}
			}
		})
	}
	r := granted(t, probe(returnsImages("[1", returned{"image/png", good})), ask{}).mustRun(t, box)
	failure(t, r, tool.CodeBadABI, tool.ParseError, "not valid JSON")
	if r.Images != nil {
		t.Error("a failure has images")
	}
}
