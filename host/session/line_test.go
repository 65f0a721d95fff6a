package session_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/session"
)

// TestOneEventIsOneLine checks that no character in an event ends a line for any reader.
func TestOneEventIsOneLine(t *testing.T) {
	lineEnds := []string{"\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\u0085", "\u2028", "\u2029"}
	text := "a" + strings.Join(lineEnds, "b") + "\n{\"seq\":8,\"type\":\"call.decision\"}"
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		t.Fatal(err)
	}
	// Like the JSON of others: only characters that must be escaped are.
	bare := strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(string(body))
	if bare == string(body) {
		t.Fatal("the test does not work")
	}
	for _, body := range []string{bare, `{"text":` + "\n" + ` "a` + "\u2028" + `"}`} {
		e := session.Event{Header: session.Header{Seq: 7, Session: "s", Type: session.TypeMessage}, Body: json.RawMessage(body)}
		out, err := e.Line()
		if err != nil {
			t.Fatal(err)
		}
		line, ok := strings.CutSuffix(string(out), "\n")
		if !ok {
			t.Errorf("%q does not end", out)
		}
		for _, end := range lineEnds {
			if strings.Contains(line, end) {
				t.Errorf("%q holds %q", line, end)
			}
		}
		var got struct {
			Seq  int
			Data any
		}
		var want any
		if json.Unmarshal([]byte(line), &got) != nil || json.Unmarshal([]byte(body), &want) != nil || got.Seq != 7 || !reflect.DeepEqual(got.Data, want) {
			t.Errorf("%q is not the event", line)
		}
	}
}
