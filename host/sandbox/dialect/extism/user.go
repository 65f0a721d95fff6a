package extism

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
)

// ofHyperMCP lists the functions that hyper-mcp adds for its plugins. Notifications are
// logged or shown; requests are not supported and end the call.
var ofHyperMCP = []function{
	{userModule, "notify_progress", parseSig("l"), asHostCall((*plugin).notifyProgress), 0},
	{userModule, "notify_logging_message", parseSig("l"), asHostCall((*plugin).notifyLog), 0},
	notice("notify_tool_list_changed", "", "its tools have changed; what was approved stays as it was"),
	notice("notify_prompt_list_changed", "", "its prompts have changed, which are not used here"),
	notice("notify_resource_list_changed", "", "its resources have changed, which are not used here"),
	notice("notify_resource_updated", "l", "one of its resources has changed, which is not used here"),
	notice("notify_url_elicitation_completed", "l", "a request to open an address was completed, though none was made here"),
	unsupported("create_elicitation", "l:l", "asks the person something"),
	unsupported("create_message", "l:l", "wants a model to write something"),
	unsupported("list_roots", ":l", "asks for the roots of an MCP client"),
	unsupported("get_access_token", "l:l", "asks for an access token"),
	unsupported("get_keyring_secret", "l:l", "asks for a secret of a keyring"),
}

// notice returns a function that only writes the message to the log.
func notice(name, types, message string) function {
	return function{userModule, name, parseSig(types), asHostCall(func(p *plugin, _ []uint64) error {
		p.Host.Log(p.Account, 2, "the plugin says that "+message)
		return nil
	}), 0}
}

// unsupported returns a function that ends the call, because the function has no way to fail.
func unsupported(name, types, wants string) function {
	return function{userModule, name, parseSig(types), asHostCall(func(*plugin, []uint64) error {
		return &failure{abi.Unavailable, fmt.Sprintf("the plugin %s (%s), which is not supported here", wants, name)}
	}), 0}
}

const maxNotice = 1 << 20 // bytes of a notification; more are a fault

// readNotification parses the JSON of the notification at an offset, and frees its block.
func (p *plugin) readNotification(offset uint64, into any) error {
	text, err := p.block("the notification", offset, maxNotice)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fault("the notification is not JSON as it should be: %v", err)
	}
	p.freeBlock(offset)
	return nil
}

func (p *plugin) notifyProgress(stack []uint64) error {
	var n struct {
		Progress float64  `json:"progress"`
		Total    *float64 `json:"total"`
		Message  string   `json:"message"`
	}
	if err := p.readNotification(stack[0], &n); err != nil {
		return err
	}
	var total *uint64
	if n.Total != nil {
		total = new(count(*n.Total))
	}
	p.Host.Progress(p.Account, count(n.Progress), total, abi.Head([]byte(n.Message), hostmod.MaxNote, p.Redact))
	return nil
}

// count converts a JSON number to a count; a negative number to 0.
func count(f float64) uint64 { return uint64(max(0, min(f, math.MaxInt64/2))) }

// logLevels maps the levels of MCP to ours.
var logLevels = map[string]int{
	"debug": 1, "info": 2, "notice": 2, "warning": 3, "error": 4, "critical": 4, "alert": 4, "emergency": 4,
}

func (p *plugin) notifyLog(stack []uint64) error {
	var n struct {
		Level  string          `json:"level"`
		Logger string          `json:"logger"`
		Data   json.RawMessage `json:"data"`
	}
	if err := p.readNotification(stack[0], &n); err != nil {
		return err
	}
	level, ok := logLevels[n.Level]
	if !ok {
		level = 2
	}
	text := string(n.Data)
	if json.Unmarshal(n.Data, &text) != nil {
		text = string(n.Data)
	}
	if n.Logger != "" {
		text = n.Logger + ": " + text
	}
	p.Host.Log(p.Account, level, abi.Head([]byte(text), hostmod.MaxLogMessage, p.Redact))
	return nil
}
