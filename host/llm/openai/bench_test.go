package openai

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/tool"
)

// BenchmarkStep measures a step of a turn after many others: encoding the conversation, and
// reading the answer. A step adds a call with a result of 4 KB.
func BenchmarkStep(b *testing.B) {
	answer := stream(textChunk, stopChunk)
	for _, steps := range []int{10, 100, 400} {
		b.Run(fmt.Sprint(steps), func(b *testing.B) {
			model := New(provider.Options{BaseURL: "http://model.test/v1", Model: "m", HTTPClient: &http.Client{
				Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					_, err := io.Copy(io.Discard, r.Body)
					return sse(answer), err
				}),
			}})
			req := llmtest.Request()
			step := func(i int) {
				id := fmt.Sprintf("call_%d", i)
				req.Messages = append(req.Messages, say(llm.Assistant, "I read on."), callMsg(id, "file_read", `{"path":"a.go"}`),
					llm.ResultMessage(id, "file_read", tool.Result{Output: tool.Text(strings.Repeat("a line of <code>\n", 240))}))
			}
			for i := range steps {
				step(i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				req.Messages = req.Messages[:2+3*(steps-1)]
				step(steps + i)
				for _, err := range model.Stream(b.Context(), req) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
