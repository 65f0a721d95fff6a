package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestAssemblerMakesAReply(t *testing.T) {
	tests := []struct {
		name   string
		deltas []Delta
		want   Reply
	}{{
		name:   "nothing is no text",
		deltas: []Delta{{Finish: FinishStop}},
		want:   Reply{Finish: FinishStop},
	}, {
		name:   "pieces of text are one, the last usage counts",
		deltas: []Delta{{Text: "Hel"}, {Text: "lo", Usage: &Usage{InputTokens: 1, OutputTokens: 1}}, {Finish: FinishStop, Usage: &Usage{InputTokens: 10, OutputTokens: 2}}},
		want:   Reply{Text: "Hello", Finish: FinishStop, Usage: Usage{InputTokens: 10, OutputTokens: 2}},
	}, {
		name: "calls are in order of first appearance, whatever their index",
		deltas: []Delta{
			{Calls: []CallDelta{{Index: math.MaxInt, ID: "x", Name: "ls"}}},
			{Text: "text comes first"},
			{Calls: []CallDelta{{Index: math.MinInt, ID: "y", Name: "glob", Arguments: `{"pattern":`}}},
			{Calls: []CallDelta{{Index: math.MaxInt, Arguments: `{"path":"."}`}, {Index: math.MinInt, Arguments: `"*"}`}}},
			{Finish: FinishTools},
		},
		want: Reply{
			Text: "text comes first",
			Calls: []CallData{
				{"x", "function", FunctionData{Name: "ls", Arguments: `{"path":"."}`}},
				{"y", "function", FunctionData{Name: "glob", Arguments: `{"pattern":"*"}`}},
			},
			Finish: FinishTools,
		},
	}, {
		name: "a missing name stays empty and missing arguments are an object",
		deltas: []Delta{
			{Calls: []CallDelta{{ID: "x", Arguments: " \n"}}},
			{Finish: FinishTools},
		},
		want: Reply{
			Calls:  []CallData{{"x", "function", FunctionData{Arguments: "{}"}}},
			Finish: FinishTools,
		},
	}, {
		name: "a call with too large arguments loses them, and the others keep theirs",
		deltas: []Delta{
			{Calls: []CallDelta{{ID: "x", Name: "write", Arguments: strings.Repeat("x", MaxArgumentBytes)}, {Index: 1, ID: "y", Name: "ls", Arguments: `{}`}}},
			{Calls: []CallDelta{{Arguments: "yz"}, {Index: 2, ID: "z", Name: "write", Arguments: `"` + strings.Repeat("z", MaxArgumentBytes-2) + `"`}}},
			{Calls: []CallDelta{{Index: 3, ID: "last", Name: "write", Arguments: strings.Repeat("x", MaxArgumentBytes)}}},
			{Finish: FinishTools},
		},
		want: Reply{
			Calls: []CallData{
				{"x", "function", FunctionData{Name: "write", Arguments: "{}", DroppedBytes: MaxArgumentBytes + 2}},
				{"y", "function", FunctionData{Name: "ls", Arguments: "{}"}},
				{"z", "function", FunctionData{Name: "write", Arguments: `"` + strings.Repeat("z", MaxArgumentBytes-2) + `"`}},
				{"last", "function", FunctionData{Name: "write", Arguments: "{}", DroppedBytes: MaxArgumentBytes}}, // 4 MiB of all calls
			},
			Finish: FinishTools,
		},
	}, {
		name: "a restart voids what came before",
		deltas: []Delta{
			{Text: "half", Calls: []CallDelta{{ID: "x", Name: "ls"}}, Usage: &Usage{InputTokens: 5}},
			{Restart: &Restart{}},
			{Text: "whole"},
			{Finish: FinishStop},
		},
		want: Reply{Text: "whole", Finish: FinishStop},
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var a Assembler
			for _, d := range tt.deltas {
				if err := a.Add(d); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, a.Reply()); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAssemblerGivesEachCallItsOwnID(t *testing.T) {
	tests := []struct {
		name string
		ids  []string
		want []string
	}{
		{"all missing", []string{"", ""}, []string{"n", "n_2"}},
		{"the same twice", []string{"a", "a", "a"}, []string{"a", "n", "n_2"}},
		{"one that would be made is taken by a later call", []string{"", "n"}, []string{"n_2", "n"}},
		{"one that is too long to be an id", []string{strings.Repeat("x", 1000), "a"}, []string{"n", "a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := Assembler{NewID: func() string { return "n" }}
			for i, id := range tt.ids {
				if err := a.Add(Delta{Calls: []CallDelta{{Index: i, ID: id, Name: "ls"}}}); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, c := range a.Reply().Calls {
				got = append(got, c.ID)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
			if again := a.Reply().Calls[0].ID; again != got[0] {
				t.Errorf("the id changed from %q to %q", got[0], again)
			}
		})
	}
	t.Run("random by default", func(t *testing.T) {
		var a Assembler
		a.Add(Delta{Calls: []CallDelta{{Name: "ls"}, {Index: 1, Name: "ls"}}})
		calls := a.Reply().Calls
		if calls[0].ID == calls[1].ID || !strings.HasPrefix(calls[0].ID, "call_") || len(calls[0].ID) > 40 {
			t.Errorf("got the ids %q and %q", calls[0].ID, calls[1].ID)
		}
	})
}

func TestAssemblerBoundsAReply(t *testing.T) {
	mib := strings.Repeat("x", 1<<20)
	tests := []struct {
		name  string
		delta func(i int) Delta
	}{
		{"text", func(int) Delta { return Delta{Text: mib} }},
		{"arguments of one call", func(int) Delta { return Delta{Calls: []CallDelta{{Arguments: mib}}} }},
		{"reasoning", func(int) Delta { return Delta{Reasoning: mib} }},
		{"what is kept", func(int) Delta {
			return Delta{ProviderData: &ProviderDataDelta{ReasoningPart, ProviderData{Data: json.RawMessage(mib)}}}
		}},
		{"arguments of many calls", func(i int) Delta { return Delta{Calls: []CallDelta{{Index: i, Arguments: mib}}} }},
		{"parts", func(int) Delta { return Delta{Reasoning: strings.Repeat("x", 9), Text: "y"} }},
		{"calls", func(i int) Delta { return Delta{Calls: []CallDelta{{Index: -i}}} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := Assembler{Provider: "test"}
			for i := range 600 {
				err := a.Add(tt.delta(i))
				if err == nil {
					continue
				}
				failure, ok := errors.AsType[*ProviderError](err)
				if !ok || failure.Retryable || failure.Provider != "test" {
					t.Errorf("got %+v, want an error of the provider that is not retryable", err)
				}
				if err := a.Add(Delta{Text: "x"}); err == nil {
					t.Errorf("the error did not stay")
				}
				if err := a.Add(Delta{Restart: &Restart{}}); err != nil {
					t.Errorf("after a restart: %v", err)
				}
				return
			}
			t.Errorf("there is no limit")
		})
	}
	t.Run("a name that is too long is cut", func(t *testing.T) {
		var a Assembler
		a.Add(Delta{Calls: []CallDelta{{Name: mib}}})
		if n := len(a.Reply().Calls[0].Function.Name); n > 256 {
			t.Errorf("the name has %d bytes", n)
		}
	})
}

func TestCallSummaryIsOneLineForAPerson(t *testing.T) {
	long := strings.Repeat("é", 500)
	tests := []struct {
		name, tool, args, want string
	}{
		{"the arguments keep the order of the model", "glob", `{"pattern":"*.c","path":"src/"}`, `glob(pattern="*.c", path="src/")`},
		{"numbers and lists are compact", "x", `{"a": 1.50, "b": [1, {"c": null}], "d": true}`, `x(a=1.50, b=[1,{"c":null}], d=true)`},
		{"no arguments", "x", `{}`, `x()`},
		{"not an object", "x", `[1]`, `x([1])`},
		{"a string", "x", `"a\nb"`, `x("a\nb")`},
		{"control characters are escaped", "b\x1b[31mash", `{"com\u0007mand":"a\u001b[2Jb\u202ec"}`, `b\x1b[31mash(com\amand="a\x1b[2Jb\u202ec")`},
		{"malformed arguments are quoted", "x", `{"a":"` + "\n", `x("{\"a\":\"\n")`},
		{"a long value is cut and the next one is still there", "file_write", `{"content":"` + long + `","path":"a"}`,
			`file_write(content="` + strings.Repeat("é", 79) + `…", path="a")`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := CallSummary(tt.tool, tt.args); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	for _, args := range []string{long, `"` + long + `"`, `{"` + long + `":{"` + long + `":1}}`, fmt.Sprintf(`{"a":%q,"b":%[1]q,"c":%[1]q,"d":%[1]q}`, long)} {
		if got := CallSummary(long, args); utf8.RuneCountInString(got) > 200 || strings.ContainsAny(got, "\n\r") {
			t.Errorf("%d characters: %s", utf8.RuneCountInString(got), got)
		}
	}
}

func FuzzCallSummary(f *testing.F) {
	f.Add("glob", `{"pattern":"*.c","path":"src/"}`)
	f.Add("\x1b[31m", `{"a":"\u202e`)
	f.Add("", `[[[["`)
	f.Fuzz(func(t *testing.T, name, args string) {
		got := CallSummary(name, args)
		if strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\u202e' }) || !utf8.ValidString(got) {
			t.Errorf("not fit for a terminal: %q", got)
		}
		if n := utf8.RuneCountInString(got); n > 700 { // each of 200 characters may be escaped
			t.Errorf("%d characters: %s", n, got)
		}
	})
}

func TestAReplyIsMadeOfMessages(t *testing.T) {
	sign := func(s string) ProviderData { return ProviderData{"test", "m", json.RawMessage(s)} }
	kept := func(s string) *ProviderData { k := sign(s); return &k }
	call := func(id string, parts ...Part) Message {
		m := CallMessage(NewCall(id, "ls", "{}"))
		m.Parts = parts
		return m
	}
	tests := []struct {
		name   string
		deltas []Delta
		want   []Message
	}{{
		name:   "a text and calls have no parts",
		deltas: []Delta{{Text: "I l"}, {Calls: []CallDelta{{ID: "x", Name: "ls"}}}, {Text: "ook."}, {Calls: []CallDelta{{Index: 1, ID: "y", Name: "ls"}}}},
		want:   []Message{{Kind: Assistant, Content: "I look."}, call("x"), call("y")},
	}, {
		name: "reasoning goes with what comes behind it",
		deltas: []Delta{
			{Reasoning: "hm"}, {Reasoning: "m"}, {ProviderData: &ProviderDataDelta{ReasoningPart, sign(`"a"`)}},
			{ProviderData: &ProviderDataDelta{ReasoningPart, sign(`"hidden"`)}},
			{Text: "I look."},
			{Reasoning: "then"}, {Calls: []CallDelta{{ID: "x", Name: "ls", ProviderData: kept(`"c"`)}}},
			{Calls: []CallDelta{{Index: 1, ID: "y", Name: "ls"}}},
		},
		want: []Message{
			{Kind: Assistant, Content: "I look.", Parts: []Part{{Type: ReasoningPart, Text: "hmm", ProviderData: kept(`"a"`)}, {Type: ReasoningPart, ProviderData: kept(`"hidden"`)}}},
			call("x", Part{Type: ReasoningPart, Text: "then"}, Part{Type: CallPart, ProviderData: kept(`"c"`)}),
			call("y"),
		},
	}, {
		name:   "what is kept of a text ends it",
		deltas: []Delta{{Text: "one"}, {ProviderData: &ProviderDataDelta{TextPart, sign(`1`)}}, {Text: "two"}},
		want: []Message{
			{Kind: Assistant, Content: "one", Parts: []Part{{Type: TextPart, ProviderData: kept(`1`)}}},
			{Kind: Assistant, Content: "two"},
		},
	}, {
		name:   "reasoning alone is a message without a text",
		deltas: []Delta{{Reasoning: "hm"}},
		want:   []Message{{Kind: Assistant, Parts: []Part{{Type: ReasoningPart, Text: "hm"}}}},
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var a Assembler
			for _, d := range tt.deltas {
				if err := a.Add(d); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, a.Reply().Messages()); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}
