package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
)

func TestACallIsShownWhileItArrives(t *testing.T) {
	long := strings.Repeat("x", writingStep)
	for _, test := range []struct {
		name   string
		pieces []llm.CallDelta
		want   []session.CallWriting
	}{
		{"the tool, then the path, then the bytes", []llm.CallDelta{
			{Name: "file_write"}, {Arguments: `{"path":"sr`}, {Arguments: `c/a.go","content":"`}, {Arguments: long}, {Arguments: `"}`},
		}, []session.CallWriting{{Number: 1, Tool: "file_write"}, {Number: 1, Tool: "file_write", Subject: "src/a.go", Bytes: 30}, {Number: 1, Tool: "file_write", Subject: "src/a.go", Bytes: 30 + len(long)}}},
		{"a path in the text of another argument is none", []llm.CallDelta{
			{Name: "w", Arguments: `{"content":"\"path\":\"x\"","list":["path","z"],`}, {Arguments: `"command":"go test`}, {Arguments: `"}`},
		}, []session.CallWriting{{Number: 1, Tool: "w", Bytes: 48}, {Number: 1, Tool: "w", Subject: "go test", Bytes: 68}}},
		{"a path behind a large argument is not looked for", []llm.CallDelta{
			{Name: "w", Arguments: `{"content":"` + long + `",`}, {Arguments: `"path":"x"}`},
		}, []session.CallWriting{{Number: 1, Tool: "w", Bytes: len(long) + 14}}},
		{"no JSON", []llm.CallDelta{{Name: "w", Arguments: `path=x`}, {Arguments: `]]}{path:x}`}}, []session.CallWriting{{Number: 1, Tool: "w", Bytes: 6}}},
		{"several calls, by any index", []llm.CallDelta{{Index: 7, Name: "a"}, {Index: -1, Name: "b"}, {Index: 7, Arguments: `{"path":"x",`}},
			[]session.CallWriting{{Number: 1, Tool: "a"}, {Number: 2, Tool: "b"}, {Number: 1, Tool: "a", Subject: "x", Bytes: 12}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := writing{}
			var got []session.CallWriting
			var reply llm.Assembler
			for _, p := range test.pieces {
				if err := reply.Add(llm.Delta{Calls: []llm.CallDelta{p}}); err != nil {
					t.Fatal(err)
				}
				if shown, news := w.add(p, reply.Arguments(p.Index)); news {
					got = append(got, shown)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	w := writing{}
	for i := range 10_000 {
		w.add(llm.CallDelta{Index: i, Name: fmt.Sprint(i), Arguments: long}, []byte(long))
	}
	if len(w) != maxWritingCalls {
		t.Errorf("%d calls are kept", len(w))
	}
}
