package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// programAsked returns an asker, the other end of its standard input, and the questions that it
// shows.
func programAsked(t *testing.T) (*programAsker, *os.File, chan session.Question) {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	p := &programAsker{a: &app{redactor: new(redact.Redactor)}, lines: terminal.NewLines(in)}
	shown := make(chan session.Question, 10)
	p.emit = func(d session.Draft) {
		var q session.Question
		if err := json.Unmarshal(d.Body, &q); err != nil || d.Type != session.TypeQuestion || d.Call == "" {
			t.Errorf("shown: %+v, %v", d, err)
		}
		shown <- q
	}
	return p, out, shown
}

func aQuestion(id string) policy.Question {
	return policy.Question{Call: tool.Call{ID: id, Tool: "bash", Turn: 1, Step: 1}, Tool: "bash", Command: "true"}.Pose("s", time.Unix(1_800_000_000, 0))
}

func TestOnlyAnExactLineIsAnAnswer(t *testing.T) {
	q := aQuestion("c1")
	id, change := hex.EncodeToString(q.ID[:]), strings.Repeat("0", 64)
	other := aQuestion("c2")
	line := func(id, change, rest string) string {
		return fmt.Sprintf(`{"question":%q,"change":%q%s}`, id, change, rest) + "\n"
	}
	yes := line(id, change, `,"allow":true`)
	for name, tt := range map[string]struct {
		in    string
		allow bool
	}{
		"a yes":                       {yes, true},
		"a yes without a line's end":  {strings.TrimSuffix(yes, "\n"), true},
		"a no":                        {line(id, change, `,"allow":false`), false},
		"nothing":                     {"", false},
		"an empty line before":        {"\n" + yes, false},
		"a word":                      {"yes\n", false},
		"another question":            {line(hex.EncodeToString(other.ID[:]), change, `,"allow":true`), false},
		"another change":              {line(id, strings.Repeat("1", 64), `,"allow":true`), false},
		"an id in capitals":           {line(strings.ToUpper(id), change, `,"allow":true`), false},
		"no question":                 {`{"change":"` + change + `","allow":true}` + "\n", false},
		"no change":                   {`{"question":"` + id + `","allow":true}` + "\n", false},
		"no answer":                   {line(id, change, ""), false},
		"null":                        {line(id, change, `,"allow":null`), false},
		"a text":                      {line(id, change, `,"allow":"true"`), false},
		"a number":                    {line(id, change, `,"allow":1`), false},
		"another field":               {line(id, change, `,"allow":true,"scope":"always"`), false},
		"another value behind":        {strings.TrimSuffix(yes, "\n") + yes, false},
		"a list":                      {"[" + strings.TrimSuffix(yes, "\n") + "]\n", false},
		"its yes again, after a no":   {line(id, change, `,"allow":false,"allow":true`), false},
		"its yes in capitals":         {line(id, change, `,"ALLOW":true`), false},
		"both, with another change":   {line(id, strings.Repeat("1", 64), `,"allow":false,"Change":"`+change+`","ALLOW":true`), false},
		"a key of it written in code": {line(id, change, `,"\u0061llow":true`), true},
		"over two lines":              {strings.Replace(yes, ",", ",\n", 1), false},
		"a long line":                 {strings.Repeat(" ", maxAnswerLine) + yes, false},
		"a line as long as it may be": {strings.Repeat(" ", maxAnswerLine-len(yes)) + yes, true},
		"a line without an end":       {strings.Repeat("[", 3*maxAnswerLine), false},
		"zeros":                       {"\x00" + yes, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, out, _ := programAsked(t)
			go func() {
				_, _ = out.WriteString(tt.in)
				_ = out.Close()
			}()
			answer, err := p.Approve(t.Context(), q)()
			if err != nil || answer.Allow != tt.allow || tt.allow && (answer.Question != q.ID || answer.Scope != policy.ScopeOnce) {
				t.Errorf("%+v, %v", answer, err)
			}
		})
	}
}

// Questions come one after the other, and a line of the program answers only the question that is open.
func TestAProgramIsAskedOneQuestionAfterTheOther(t *testing.T) {
	p, out, shown := programAsked(t)
	const n = 5
	answers := make(chan policy.Answer, n)
	for i := range n {
		wait := p.Approve(t.Context(), aQuestion(fmt.Sprint("c", i)))
		go func() {
			answer, err := wait()
			if err != nil {
				t.Error(err)
			}
			answers <- answer
		}()
	}
	long := strings.Repeat("x", 5*maxAnswerLine) + "\n" // a no to the first question, and nothing to the next
	for i := range n {
		q := <-shown
		if want := aQuestion(fmt.Sprint("c", i)); q.ID != hex.EncodeToString(want.ID[:]) {
			t.Errorf("question %d is %s, want %x", i, q.ID, want.ID)
		}
		if len(shown) != 0 {
			t.Fatal("two questions are shown at once")
		}
		line := long
		if i > 0 {
			line = fmt.Sprintf(`{"question":%q,"change":%q,"allow":true}`, q.ID, q.Change) + "\n"
		}
		if _, err := out.WriteString(line); err != nil {
			t.Fatal(err)
		}
		if a := <-answers; a.Allow != (i > 0) {
			t.Errorf("answer %d is %+v", i, a)
		}
	}
}

// A question that nobody waits for any more does not wait for a line.
func TestAProgramThatDoesNotAnswerHoldsNothingUp(t *testing.T) {
	p, _, shown := programAsked(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	first, second := p.Approve(ctx, aQuestion("c1")), p.Approve(ctx, aQuestion("c2"))
	done := make(chan error, 2)
	for _, wait := range []func() (policy.Answer, error){first, second} {
		go func() {
			answer, err := wait()
			if answer.Allow {
				t.Error("it is allowed")
			}
			done <- err
		}()
	}
	<-shown
	cancel(errInterrupted)
	for range 2 {
		if err := <-done; err != errInterrupted {
			t.Error(err)
		}
	}
}
