package door_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log"
	"os"
	"path/filepath"

	"github.com/stockade-dev/stockade/host/agent"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// replies is a model that answers with one reply after the other.
type replies []llm.Delta

func (r *replies) Stream(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		next := (*r)[0]
		*r = (*r)[1:]
		yield(next, nil)
	}
}

// uses is a reply that calls a tool.
func uses(name, args string) llm.Delta {
	return llm.Delta{Calls: []llm.CallDelta{{ID: "call", Name: name, Arguments: args}}, Finish: llm.FinishTools}
}

// A program with a model and an approver of its own lets the built-in tools work
// on one directory.
func Example() {
	dir, err := os.MkdirTemp("", "workspace-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "greeting.txt")
	if err := os.WriteFile(file, []byte("Hello, wrold!\n"), 0o600); err != nil {
		log.Fatal(err)
	}

	d := door.New(door.Options{})
	defer d.Close()
	mount, err := door.ParseMount(dir) // to be read and written; DIR:ro to be read
	if err != nil {
		log.Fatal(err)
	}
	s, err := d.Open(context.Background(), door.SessionOptions{
		Workspace: dir,
		Policy:    policy.Options{Mounts: []policy.Mount{mount}},
		Approver: door.ApproverFunc(func(_ context.Context, q policy.Question) (policy.Answer, error) {
			return policy.Answer{Allow: q.Tool == "file_edit", By: "example"}, nil
		}),
		Agent: agent.Options{Model: &replies{
			uses("file_read", `{"path":"greeting.txt"}`),
			uses("bash", `{"command":"sed -i s/wrold/world/ greeting.txt"}`),
			uses("file_edit", `{"path":"greeting.txt","old_string":"wrold","new_string":"world"}`),
			{Text: "It was misspelt.", Finish: llm.FinishStop},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for e, err := range s.Run(context.Background(), "Mend the spelling.") {
		if err != nil {
			log.Fatal(err)
		}
		m, _ := e.Message()
		var decision session.Decision
		switch {
		case e.Type == session.TypeToolCall, m.Kind == llm.Assistant:
			fmt.Println(m.Kind, m.Content)
		case e.Type == session.TypeDecision && json.Unmarshal(e.Body, &decision) == nil && decision.Answer != nil:
			fmt.Println("asked about", decision.Tool, "and answered", *decision.Answer)
		}
	}
	text, err := os.ReadFile(file)
	fmt.Printf("%s%v\n", text, err)
	// Output:
	// tool_call file_read(path="greeting.txt")
	// tool_call bash(command="sed -i s/wrold/world/ greeting.txt")
	// asked about bash and answered false
	// tool_call file_edit(path="greeting.txt", old_string="wrold", new_string="world")
	// asked about file_edit and answered true
	// assistant It was misspelt.
	// Hello, world!
	// <nil>
}

// One call needs no model. A call that no rule allows is denied if nobody can be asked.
func ExampleSession_Call() {
	d := door.New(door.Options{})
	defer d.Close()
	s, err := d.Open(context.Background(), door.SessionOptions{})
	if err != nil {
		log.Fatal(err)
	}
	result, err := s.Call(context.Background(), tool.Call{
		ID: "1", Tool: "bash", Args: json.RawMessage(`{"command":"date"}`), Caller: tool.CallerMCP, Cwd: "/",
	})
	fmt.Println(result.Err.Code, err)
	// Output:
	// DENIED <nil>
}
