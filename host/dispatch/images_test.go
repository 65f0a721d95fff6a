package dispatch

import (
	"context"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// Images are recorded once, for the model that reads them. A caller who gives an image of
// a person's call to a model records the image there.
func TestImagesAreRecordedForTheModelThatReadsThem(t *testing.T) {
	for name, c := range map[string]struct {
		turn     int
		data     string
		recorded bool
		returned bool
	}{
		"in a turn":                  {1, "\x89PNG", true, true},
		"a call of a person":         {0, "\x89PNG", false, true},
		"one with a secret":          {1, "\x89PNG tEXt hunter2-hunter2", false, false},
		"a person's with a secret":   {0, "\x89PNG tEXt hunter2-hunter2", false, false},
		"one with it in hexadecimal": {1, "\x89PNG 68756e746572322d68756e74657232", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policy.Options{})
			w.options.Redact = new(redact.Redactor)
			w.options.Redact.Add("hunter2-hunter2")
			w.run = func(context.Context, policy.Grant, *tool.Module, tool.Call, func(tool.Progress)) (tool.Result, error) {
				return tool.Result{Output: tool.Text("an image"), Images: []tool.Image{{Mime: "image/png", Data: []byte(c.data)}}}, nil
			}
			call := aCall("file_read", `{"path":"a"}`)
			call.Turn = c.turn
			r, err := w.call(t.Context(), call)
			if err != nil || r.Err != nil {
				t.Fatal(err, r.Err)
			}
			if (len(r.Images) == 1) != c.returned || c.returned == strings.Contains(r.Note, "known secret: 1") {
				t.Errorf("%d images come back, and the note is %q", len(r.Images), r.Note)
			}
			for _, e := range w.events {
				m, ok := e.Message()
				if !ok || e.Type != session.TypeToolResult {
					continue
				}
				if recorded := len(m.Parts) == 1 && string(m.Parts[0].Data) == c.data; recorded != c.recorded || len(m.Parts) != len(r.Images) {
					t.Errorf("the log has %+v", m.Parts)
				}
			}
		})
	}
}

func TestAnotherImageIsAnotherResult(t *testing.T) {
	result := func(data string) tool.Result {
		return tool.Result{Output: tool.Text("an image"), Images: []tool.Image{{Mime: "image/png", Data: []byte(data)}}}
	}
	a, same, other := resultDigest(result("a")), resultDigest(result("a")), resultDigest(result("b"))
	if a == other || a != same {
		t.Error("results are not told apart by their images")
	}
}
