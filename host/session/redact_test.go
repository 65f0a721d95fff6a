package session_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/session"
)

// covers returns a redactor that knows one secret word.
func covers(word string) *redact.Redactor {
	r := new(redact.Redactor)
	r.Add(word)
	return r
}

// keeping is a store that records drafts.
type keeping struct {
	session.Store
	drafts []session.Draft
	fails  error
}

func (k *keeping) Append(_ context.Context, drafts ...session.Draft) ([]session.Event, error) {
	if k.fails != nil {
		return nil, k.fails
	}
	var out []session.Event
	for _, d := range drafts {
		k.drafts = append(k.drafts, d)
		out = append(out, session.Seal(d, uint64(len(k.drafts)), time.Unix(0, 0), [32]byte{}, [32]byte{}))
	}
	return out, nil
}

func TestALogRecordsAndShowsNoSecret(t *testing.T) {
	store := &keeping{}
	log := session.NewLog(store, "s", time.Now)
	log.SetRedactor(covers("hunter2"))
	var shown []string
	log.Observe(func(e session.Event) { shown = append(shown, string(e.Type)+" "+string(e.Body)) })

	delta := func(text string) {
		log.Emit(session.Draft{Type: session.TypeDelta, Turn: 1, Step: 2, Body: json.RawMessage(`{"text":"` + text + `"}`)})
	}
	delta("it is hun")
	delta("ter2")
	delta(", says hunt")
	if _, err := log.Append(t.Context(), session.Draft{Type: session.TypeMessage, Body: json.RawMessage(`{"content":"it is hunter2"}`)}); err != nil {
		t.Fatal(err)
	}
	log.Emit(session.Draft{Type: session.TypeProgress, Body: json.RawMessage(`{"message":"hunter2"}`)})
	delta("void hunt")
	log.Emit(session.Draft{Type: session.TypeRestart, Body: json.RawMessage(`{"error":"hunter2"}`)})
	delta("er2")
	log.Emit(session.Draft{Type: session.TypeCallState, Body: json.RawMessage(`{"state":"x"}`)})
	want := []string{
		`delta {"text":"it is "}`, `delta {"text":"[redacted]"}`, `delta {"text":", says "}`, `delta {"text":"hunt"}`,
		`message {"content":"it is [redacted]"}`, `progress {"message":"[redacted]"}`,
		`delta {"text":"void "}`, `delta.restart {"error":"[redacted]"}`, `delta {"text":"er2"}`, `call.state {"state":"x"}`,
	}
	if !slices.Equal(shown, want) {
		t.Errorf("it showed\n%s\nwant\n%s", strings.Join(shown, "\n"), strings.Join(want, "\n"))
	}
	if len(store.drafts) != 1 || strings.Contains(string(store.drafts[0].Body), "hunter2") {
		t.Errorf("it recorded %s", store.drafts[0].Body)
	}
}

// A summary shows the beginning of a long argument, and so a piece of a secret.
func TestNoPieceOfASecretIsInTheSummaryOfACall(t *testing.T) {
	long := strings.Repeat("abcdefgh", 30)
	for what, args := range map[string]string{
		"longer than a summary": `{"key":"` + long + `"}`,
		"at the cut":            `{"url":"https://` + strings.Repeat("x", 60) + long + `"}`,
		"in a list":             `{"headers":["Bearer ` + long + `"]}`,
		"no JSON":               `key ` + long,
	} {
		call := llm.NewCall("c", "t", args)
		call.Function.Original = &llm.FunctionData{Name: "t", Arguments: strings.Replace(args, "abcd", `a\\u0062cd`, 1)} // twice in JSON
		body, err := json.Marshal(llm.CallMessage(call))
		if err != nil {
			t.Fatal(err)
		}
		store := &keeping{}
		log := session.NewLog(store, "s", time.Now)
		log.SetRedactor(covers(long))
		var shown string
		log.Observe(func(e session.Event) { shown += string(e.Body) })
		if _, err := log.Append(t.Context(), session.Draft{Type: session.TypeToolCall, Call: "c", Body: body}); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{string(store.drafts[0].Body), shown} {
			if strings.Contains(text, "cdefgh") || !strings.Contains(text, "redacted") {
				t.Errorf("%s: %s", what, text)
			}
		}
		if m, ok := (session.Event{Header: session.Header{Type: session.TypeToolCall}, Body: store.drafts[0].Body}).Message(); !ok || !strings.HasPrefix(m.Content, "t(") {
			t.Errorf("%s: the message is %+v, %v", what, m, ok)
		}
	}
}

// TestReasoningLosesSecrets checks that its provider data is removed, too.
func TestReasoningLosesSecrets(t *testing.T) {
	log := session.NewLog(&keeping{}, "s", time.Now)
	log.SetRedactor(covers("hunter2"))
	kept := func(data string) *llm.ProviderData {
		return &llm.ProviderData{Provider: "p", Model: "m", Data: json.RawMessage(data)}
	}
	m := llm.CallMessage(llm.NewCall("a", "t", `{"key":"hunter2"}`))
	m.Parts = []llm.Part{
		{Type: llm.ReasoningPart, Text: "it is hunter2", ProviderData: kept(`"signed"`)}, {Type: llm.ReasoningPart, Text: "what now", ProviderData: kept(`"fine"`)},
		{Type: llm.CallPart, ProviderData: kept(`{"x":"hunter2"}`)},
	}
	events, err := log.Append(t.Context(), session.NewDraft(session.TypeToolCall, 1, 1, "a", m))
	if err != nil {
		t.Fatal(err)
	}
	body := string(events[0].Body)
	for text, want := range map[string]bool{
		"hunter2": false, "signed": false, `"text":"it is [redacted]"`: true, `"data":"fine"`: true, `"content":"t(key=\"[redacted]\")"`: true,
	} {
		if strings.Contains(body, text) != want {
			t.Errorf("%s in the log: %v, want %v: %s", text, !want, want, body)
		}
	}
	if seen := string(events[0].ForDisplay().Body); strings.Contains(seen, "kept") || !strings.Contains(seen, "what now") || strings.Contains(seen, `"type":"call"`) {
		t.Errorf("people see %s", seen)
	}
}

// TestImagesStayAsTheyAre checks that images are not redacted: their bytes can look like a
// secret, and removing them would destroy the image.
func TestImagesStayAsTheyAre(t *testing.T) {
	store := &keeping{}
	log := session.NewLog(store, "s", time.Now)
	log.SetRedactor(covers("hunter2"))
	image := llm.Part{Type: llm.ImagePart, Mime: "image/png", Data: []byte("\x86\xe9\xed\x7a\xbd\x86\xe9\xed")} // in base64 it begins with hunter2
	for _, typ := range []session.Type{session.TypeMessage, session.TypeToolResult} {
		m := llm.Message{Kind: llm.User, Content: "it is hunter2", Data: json.RawMessage(`{"output":"hunter2"}`), Parts: []llm.Part{image}}
		events, err := log.Append(t.Context(), session.NewDraft(typ, 1, 1, "", m))
		if err != nil {
			t.Fatal(err)
		}
		body := string(events[0].Body)
		if !strings.Contains(body, "hunter2") || !strings.Contains(body, `"content":"it is [redacted]","data_json":{"output":"[redacted]"}`) {
			t.Errorf("the log has %s", body)
		}
		got, ok := events[0].Message()
		if !ok || len(got.Parts) != 1 || string(got.Parts[0].Data) != string(image.Data) {
			t.Errorf("the image is %+v", got.Parts)
		}
		if seen := events[0].ForDisplay(); strings.Contains(string(seen.Body), "hunter2") || !strings.Contains(string(seen.Body), `"parts":[{"type":"image","mime":"image/png"}]`) {
			t.Errorf("without it the event is %s", seen.Body)
		}
	}
}
