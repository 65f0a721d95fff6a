package openai

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
)

func picture(data string) llm.Part {
	return llm.Part{Type: llm.ImagePart, Mime: "image/png", Data: []byte(data)}
}

func seen(id string, parts ...llm.Part) llm.Message {
	m := resultMsg(id, "of "+id)
	m.Parts = parts
	return m
}

// outlineOf describes each message of a request on a line: its role, and its content or its
// parts.
func outlineOf(t *testing.T, body []byte) (out []string) {
	t.Helper()
	var req struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		t.Fatal(err)
	}
	for _, m := range req.Messages {
		var text string
		var parts []struct {
			Text  string `json:"text"`
			Image struct {
				URL string `json:"url"`
			} `json:"image_url"`
		}
		line := m.Role + ":"
		if m.Content == nil { // of calls
		} else if json.Unmarshal(m.Content, &text) == nil {
			line += " " + text
		} else if err := json.Unmarshal(m.Content, &parts); err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			line += " | " + p.Text + p.Image.URL
		}
		out = append(out, line)
	}
	return out
}

// TestImagesOnTheWire checks that images of results follow all results of their step,
// because the API requires results directly after their calls.
func TestImagesOnTheWire(t *testing.T) {
	opts := scriptedServer(t, `{"text":"ok"}`)
	spy := &wireSpy{next: opts.HTTPClient.Transport}
	opts.HTTPClient = &http.Client{Transport: spy}
	prompt := say(llm.User, "look")
	prompt.Parts = []llm.Part{picture("p")}
	_, err := llmtest.Collect(t.Context(), t, New(opts), llm.Request{Model: "m", Messages: []llm.Message{
		prompt,
		callMsg("a", "file_read", "{}"), callMsg("b", "ls", "{}"), callMsg("c", "shot", "{}"),
		seen("c", picture("c1"), llm.Part{Type: llm.ImagePart, Mime: "image/png"}), seen("a", picture("a1")), seen("b"),
		callMsg("d", "ls", "{}"), seen("d"), seen("nobody", picture("x")),
		say(llm.User, "and now"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"user: | look | [image 1 of this message] | data:image/png;base64,cA==",
		"assistant:", "tool: of a", "tool: of b", "tool: of c",
		"user: | " + llm.ResultImagesHeading + " | [image 1 of the result of a, file_read] | data:image/png;base64,YTE=" +
			" | [image 1 of the result of c, shot] | data:image/png;base64,YzE= | [image 2 of the result of c, shot was left out to save room; read it again if you need it]",
		"assistant:", "tool: of d", "user: and now",
	}
	if diff := cmp.Diff(want, outlineOf(t, spy.bodies[0])); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestServersThatTakeNoImages checks that a request is repeated without its images after a
// refusal that may be about images. New images are tried again.
func TestServersThatTakeNoImages(t *testing.T) {
	one, two := seen("a", picture("one")), seen("b", picture("two"))
	req := func(results ...llm.Message) llm.Request {
		r := llm.Request{Model: "m", Messages: []llm.Message{say(llm.User, "look")}}
		for i, m := range results {
			r.Messages = append(r.Messages, callMsg(string(rune('a'+i)), "file_read", "{}"), m)
		}
		return r
	}
	const image, other = `"data:image/png;base64,b25l"`, `"data:image/png;base64,dHdv"`
	refuses := func(status, message, code string) string {
		return `{"status":` + status + `,"error":{"message":"` + message + `","code":"` + code + `"}}`
	}
	const without = `{"text":"ok","expect":["it could not be sent","of a"],"expect_not":[` + image + `]}`
	tests := []struct {
		name   string
		script []string
		reqs   []llm.Request
		status int // of the error of the last; 0: there is none
	}{
		{"a model without eyes", []string{refuses("400", "image_url is only supported by certain models", ""), without, without}, []llm.Request{req(one), req(one)}, 0},
		{"a server that knows text only", []string{refuses("422", "messages[2].content must be a string", ""), without}, []llm.Request{req(one)}, 0},
		{"one that has no better status", []string{refuses("500", "Image input is not supported", ""), without}, []llm.Request{req(one)}, 0},
		{"a router without a model for it", []string{refuses("404", "No endpoints found that support image input", ""), without}, []llm.Request{req(one)}, 0},
		{"another image later", []string{refuses("400", "image 1 is broken", ""), without, `{"text":"ok","expect":[` + other + `,"image 1 is broken"],"expect_not":[` + image + `]}`}, []llm.Request{req(one), req(one, two)}, 0},
		{"it was not the images", []string{refuses("400", "no", ""), refuses("400", "still not", ""), `{"text":"ok","expect":[` + image + `]}`}, []llm.Request{req(one), req(one)}, 0},
		{"the first error is the one that is told", []string{refuses("400", "no", ""), refuses("429", "slow down", "")}, []llm.Request{req(one)}, 400},
		{"a request without images", []string{refuses("400", "no image", "")}, []llm.Request{req(seen("a"))}, 400},
		{"too long a conversation", []string{refuses("400", "too long", "context_length_exceeded")}, []llm.Request{req(one)}, 400},
		{"too long a conversation, in words about other things, too", []string{refuses("400", "litellm.ContextWindowExceededError: no image model=x-reasoning", "")}, []llm.Request{req(one)}, 400},
		{"a server that has failed", []string{refuses("500", "oops", "")}, []llm.Request{req(one)}, 500},
		{"a key that is wrong", []string{refuses("401", "no image for you", "")}, []llm.Request{req(one)}, 401},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := scriptedServer(t, tt.script...)
			spy := &wireSpy{next: opts.HTTPClient.Transport}
			opts.HTTPClient = &http.Client{Transport: spy}
			model := New(opts)
			var err error
			for _, r := range tt.reqs {
				_, err = llmtest.Collect(t.Context(), t, model, r)
			}
			if len(spy.bodies) != len(tt.script) {
				t.Errorf("%d requests were sent, want %d", len(spy.bodies), len(tt.script))
			}
			status := 0
			if failure, ok := err.(*llm.ProviderError); ok {
				status, err = failure.Status, nil
			}
			if status != tt.status || err != nil {
				t.Errorf("got %d, %v, want %d", status, err, tt.status)
			}
		})
	}
}

func TestWhatIsLeftOfAMessageWithoutItsImagesIsText(t *testing.T) {
	opts := scriptedServer(t, `{"status":400,"error":{"message":"no"}}`, `{"text":"ok"}`)
	spy := &wireSpy{next: opts.HTTPClient.Transport}
	opts.HTTPClient = &http.Client{Transport: spy}
	prompt := say(llm.User, "look")
	prompt.Parts = []llm.Part{picture("p")}
	if _, err := llmtest.Collect(t.Context(), t, New(opts), llm.Request{Model: "m", Messages: []llm.Message{prompt}}); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(outlineOf(t, spy.bodies[1]), "\n")
	if want := "user: look\n[image 1 of this message]\n[it could not be sent: the server refused a request with it: no]"; got != want {
		t.Errorf("got %q", got)
	}
}
