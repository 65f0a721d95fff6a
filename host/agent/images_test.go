package agent

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// seeing returns the events of a call that returns images of these sizes in bytes.
func seeing(turn int, id string, sizes ...int) []session.Event {
	r := tool.Result{Output: tool.Text("of " + id)}
	for _, n := range sizes {
		r.Images = append(r.Images, tool.Image{Mime: "image/png", Data: bytes.Repeat([]byte("x"), n)})
	}
	return []session.Event{called(turn, id), event(turn, session.TypeToolResult, id, llm.ResultMessage(id, "ls", r))}
}

// there returns an x for each image in a conversation, and an o for each one that was
// left out.
func there(messages []llm.Message) (out string) {
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Data != nil {
				out += "x"
			} else {
				out += "o"
			}
		}
	}
	return out
}

func TestOldImagesAreForgotten(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		sizes [][]int // by call
		want  string
	}{
		"few":                           {[][]int{{1}, {1, 1}}, "xxx"},
		"as many as a request may hold": {[][]int{slices.Repeat([]int{1}, maxImages)}, "xxxxxxxxxxxxxxxxxxxx"},
		"one more makes room for ten":   {[][]int{slices.Repeat([]int{1}, maxImages), {1}}, "ooooooooooo" + "xxxxxxxxxx"},
		"too many bytes":                {[][]int{{3 * mib, 3 * mib, 3 * mib, 3 * mib}, {1}}, "oooxx"},
		"too many bytes of one result":  {[][]int{{4 * mib, 4 * mib, 4 * mib, 1}}, "ooxx"},
		"the last stays, however large": {[][]int{{1}, {13 * mib}}, "ox"},
		"room is made for some at once": {[][]int{slices.Repeat([]int{1}, maxImages+1), slices.Repeat([]int{1}, 10)}, strings.Repeat("o", 21) + "xxxxxxxxxx"},
	} {
		t.Run(name, func(t *testing.T) {
			events := []session.Event{said(1, llm.User, "look")}
			for i, sizes := range c.sizes {
				events = append(events, seeing(1, fmt.Sprint("c", i), sizes...)...)
			}
			past, err := ReadConversation(of(events...))
			if err != nil {
				t.Fatal(err)
			}
			p := past.planner()
			p.limitImages()
			past.reduce(p.parts)
			if got := there(past.messages); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if past.chars != total(past.messages) || past.chars != p.chars {
				t.Errorf("%d characters are said to be %d", total(past.messages), past.chars)
			}
		})
	}
}

// TestAnImageCountsForWhatAProviderTakesForIt: old images are left out before the request is too
// large, and none that no model has seen.
func TestAnImageCountsForWhatAProviderTakesForIt(t *testing.T) {
	events := []session.Event{said(1, llm.User, "look")}
	for i := range 3 {
		events = append(events, seeing(1, fmt.Sprint("c", i), 3<<20)...)
	}
	events = append(events, said(1, llm.Assistant, "hm"), event(1, session.TypeStepEnded, "", session.StepEnded{}))
	for i := range 4 {
		events = append(events, seeing(1, fmt.Sprint("d", i), 10)...)
	}
	past, err := ReadConversation(of(events...))
	if err != nil {
		t.Fatal(err)
	}
	all := total(past.messages)
	if all < 7*imageChars || all > 7*imageChars+5000 {
		t.Errorf("seven images count for %d characters", all)
	}
	for target, want := range map[int]string{all: "xxxxxxx", all - 1: "ooxxxxx", 10: "oooxxxx"} {
		p := past.planner()
		p.plan(budget{target, all}, 10_000)
		if there(p.messages) != want || p.chars != total(p.messages) {
			t.Errorf("target %d: %s, %d of %d characters, want %s", target, there(p.messages), p.chars, total(p.messages), want)
		}
		if got := there(past.messages); got != "xxxxxxx" {
			t.Fatalf("the conversation itself was changed: %s", got)
		}
	}
}
