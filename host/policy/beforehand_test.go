package policy_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

func TestAnswersGivenBeforehand(t *testing.T) {
	spec := func(name string, c tool.Capabilities) tool.Spec {
		return tool.Spec{Definition: tool.Definition{
			Name: name, Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"command":{"type":"string"}}}`),
		}, Capabilities: c}
	}
	catalog, err := tool.NewCatalog(map[*tool.Module]tool.Manifest{{}: {Tools: []tool.Spec{
		spec("file_read", tool.Capabilities{Files: tool.FilesRead}), spec("bash", tool.Capabilities{Exec: "command"}),
		spec("get", tool.Capabilities{Secrets: []tool.Secret{{Name: "TOKEN"}, {Name: "KEY"}}}),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	in := func(tier policy.Tier) func() policy.Tier { return func() policy.Tier { return tier } }
	for text, want := range map[string]policy.AnswerError{
		"file_read(":                 {Fault: policy.FaultForm},
		"file_raed":                  {Fault: policy.FaultTool},
		"file_read(to=x)":            {Fault: policy.FaultArgument, Tool: "file_read"},
		"bash":                       {Fault: policy.FaultAllCommands, Tool: "bash", Instead: "bash(command=COMMAND)"},
		"bash reads .env":            {Fault: policy.FaultAllCommands, Tool: "bash", Instead: "bash(command=COMMAND)"},
		"bash(pattern:command=.*)":   {Fault: policy.FaultNeverCounts, Tool: "bash"},
		"bash(words:command=go ...)": {Fault: policy.FaultForm},
		"get":                        {Fault: policy.FaultSecrets, Tool: "get", Instead: "get with KEY,TOKEN"},
		"file_read with KEY":         {Fault: policy.FaultSecrets, Tool: "file_read"},
	} {
		_, err := policy.ParseAnswer(text, catalog, in(1))
		e, ok := errors.AsType[*policy.AnswerError](err)
		if !ok || e.Rule != text || e.Fault != want.Fault || e.Tool != want.Tool || e.Instead != want.Instead || e.What == "" {
			t.Errorf("%s: %+v, %v", text, e, err)
		}
	}
	// If processes are confined, a rule about commands is like any other.
	for text, fault := range map[string]policy.AnswerFault{
		"bash": -1, "bash reads .env": -1, "bash(pattern:command=.*)": -1, "bash(words:command=go test ...)": -1, "bash with KEY": policy.FaultSecrets,
		"file_read(words:path=go ...)": policy.FaultForm, "bash(cmd=x)": policy.FaultArgument,
	} {
		_, err := policy.ParseAnswer(text, catalog, in(policy.TierConfined))
		e, ok := errors.AsType[*policy.AnswerError](err)
		if ok != (fault >= 0) || ok && e.Fault != fault {
			t.Errorf("%s, confined: %v", text, err)
		}
	}
	// An alias from another system stands for the tool.
	r, err := policy.ParseAnswer("read_file(path=x)", catalog, in(policy.TierNone))
	if err != nil || r.String() != "file_read(path=x)" || r.Source != policy.SourceFlag {
		t.Errorf("%v, %v", r, err)
	}
}
