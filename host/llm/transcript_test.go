package llm

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/tool"
)

func said(kind Kind, text string, parts ...Part) Message {
	return Message{Kind: kind, Content: text, Parts: parts}
}

func called(id string, parts ...Part) Message {
	m := CallMessage(NewCall(id, "ls", `{"path":"`+id+`"}`))
	m.Parts = parts
	return m
}

func returned(id string, parts ...Part) Message {
	m := ResultMessage(id, "ls", tool.Result{Output: tool.Text("result of " + id)})
	m.Parts = parts
	return m
}

// brief writes each entry on one line.
func brief(entries []*Entry) string {
	var out []string
	for _, e := range entries {
		line := string(e.Role)
		for _, p := range e.Parts {
			switch p.Type {
			case CallPart:
				line += fmt.Sprintf(" %s=%s(%s)", p.Call.ID, p.Call.Function.Name, p.Call.Function.Arguments)
			case ResultPart:
				text := p.Text
				if strings.Contains(text, "no result of this call") {
					text = "MISSING"
				} else if i := strings.Index(text, "result of"); i >= 0 {
					text = text[i:]
				}
				line += fmt.Sprintf(" %s:%.11s", p.Result.CallID, text)
				if len(p.Images) > 0 {
					line += fmt.Sprintf("+%d", len(p.Images))
				}
			default:
				line += fmt.Sprintf(" %s %q", p.Type, p.Text)
			}
			if p.ProviderData != nil {
				line += "~" + string(p.ProviderData.Data)
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func TestEntriesAreAConversationThatAPIsAccept(t *testing.T) {
	kept := &ProviderData{"test", "m", json.RawMessage("1")}
	image := Part{Type: ImagePart, Mime: "image/png", Data: []byte("x")}
	raw := func(kind Kind, data string) Message {
		return Message{Kind: kind, Content: "c", Data: json.RawMessage(data)}
	}
	call := func(id, name, args string) Message { return CallMessage(NewCall(id, name, args)) }
	tests := []struct {
		name     string
		messages []Message
		want     []string
	}{{
		"a turn with two calls in one step",
		[]Message{said(System, "s"), said(User, "u", image), said(Assistant, "a"), called("x"), called("y"), returned("y"), returned("x", image), said(Assistant, "b")},
		[]string{`system text "s"`, `user text "u" image ""`, `assistant text "a" x=ls({"path":"x"}) y=ls({"path":"y"})`, `tool x:result of x+1 y:result of y`, `assistant text "b"`},
	}, {
		"reasoning and what was kept stay in their order",
		[]Message{
			said(Assistant, "a", Part{Type: ReasoningPart, Text: "r"}, Part{Type: ReasoningPart, ProviderData: kept}, Part{Type: TextPart, ProviderData: kept}),
			called("x", Part{Type: ReasoningPart, Text: "q"}, Part{Type: CallPart, ProviderData: kept}), returned("x"), said(Assistant, "", Part{Type: ReasoningPart, Text: "p"}),
		},
		[]string{`assistant reasoning "r" reasoning ""~1 text "a"~1 reasoning "q" x=ls({"path":"x"})~1`, `tool x:result of x`, `assistant reasoning "p"`},
	}, {
		"a text between two calls of a step",
		[]Message{called("x"), said(Assistant, "a"), called("y"), returned("x"), returned("y")},
		[]string{`assistant x=ls({"path":"x"}) text "a" y=ls({"path":"y"})`, `tool x:result of x y:result of y`},
	}, {
		"a call without a result gets one, and a late one goes to its call",
		[]Message{called("x"), called("y"), said(User, "u"), returned("y"), said(Assistant, "a")},
		[]string{`assistant x=ls({"path":"x"}) y=ls({"path":"y"})`, `tool x:MISSING y:result of y`, `user text "u"`, `assistant text "a"`},
	}, {
		"a result without a call is dropped, and so is a second one",
		[]Message{returned("x"), said(User, "u"), called("x"), returned("x"), returned("x"), raw(ToolResult, "?"), said(Assistant, "a")},
		[]string{`user text "u"`, `assistant x=ls({"path":"x"})`, `tool x:result of x`, `assistant text "a"`},
	}, {
		"two steps with the same id",
		[]Message{called("x"), returned("x"), called("x"), returned("x")},
		[]string{`assistant x=ls({"path":"x"})`, `tool x:result of x`, `assistant x=ls({"path":"x"})`, `tool x:result of x`},
	}, {
		"the same id twice in a step",
		[]Message{called("x"), called("x"), returned("x")},
		[]string{`assistant x=ls({"path":"x"}) call_ed2a0f431969336db5d77431197daac3=ls({"path":"x"})`, `tool x:MISSING call_ed2a0f431969336db5d77431197daac3:result of x`},
	}, {
		"what APIs refuse is made into what they take",
		[]Message{said(User, ""), said(Assistant, ""), call("a b", "no such/tool", "[1"), call(strings.Repeat("x", 41), "", " "), raw(ToolCall, "?"), said(System, "")},
		[]string{`user text "(empty message)"`,
			`assistant call_c8687a08aa5d6ed2044328fa6a697ab8=no_such_tool({"malformed_arguments":"[1"}) call_3164596df4fdd018b2c567ec8c03e79b=unknown({}) text "c"`,
			`tool call_c8687a08aa5d6ed2044328fa6a697ab8:MISSING call_3164596df4fdd018b2c567ec8c03e79b:MISSING`},
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(strings.Join(tt.want, "\n"), brief(new(Transcript).Entries(tt.messages))); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

// TestATranscriptMakesWhatANewOneWould changes a conversation at random, and compares the
// entries with those of a new transcript.
func TestATranscriptMakesWhatANewOneWould(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	message := func() Message {
		id := fmt.Sprintf("call_%d", rnd.IntN(6))
		switch rnd.IntN(8) {
		case 0:
			return said(User, "u"+id)
		case 1:
			return said(Assistant, "a"+id)
		case 2:
			return said(Assistant, "", Part{Type: ReasoningPart, Text: id})
		case 3, 4:
			return called(id)
		default:
			return returned(id, Part{Type: ImagePart, Data: []byte(id)})
		}
	}
	for range 100 {
		var transcript Transcript
		var messages []Message
		for range 30 {
			switch n := len(messages); {
			case n > 0 && rnd.IntN(12) == 0:
				messages = messages[:rnd.IntN(n)]
			case n > 0 && rnd.IntN(12) == 0:
				messages[rnd.IntN(n)] = message()
			}
			for range rnd.IntN(4) {
				messages = append(messages, message())
			}
			got, want := brief(transcript.Entries(messages)), brief(new(Transcript).Entries(messages))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("entries of\n%+v\n(-new +kept):\n%s", messages, diff)
			}
		}
	}
}

func TestATranscriptKeepsWhatHasNotChanged(t *testing.T) {
	var transcript Transcript
	messages := []Message{said(System, "s"), said(User, "u")}
	made := 0
	wire := func(*Entry) []byte { made++; return []byte("{}") }
	for i := range 50 {
		id := fmt.Sprintf("call_%d", i)
		messages = append(messages, said(Assistant, "a"), called(id), returned(id))
		for _, e := range transcript.Entries(messages) {
			e.Encode("1", wire)
		}
	}
	// Each request encodes the preceding step again, because more could have belonged to it.
	if entries := 2 + 2*50; made > entries+2*50 {
		t.Errorf("%d wire forms were made of %d entries", made, entries)
	}
	before := made
	for _, e := range transcript.Entries(messages) {
		e.Encode("2", wire)
	}
	if made-before != 102 {
		t.Errorf("%d wire forms were made of another version, want all 102", made-before)
	}
}
