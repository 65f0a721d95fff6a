package offline

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/tool"
)

// Planner is the offline model. It is a [Responder] without a state: the same conversation always
// gets the same answer. The zero value is ready and safe for concurrent use.
//
// It parses the last user message as a list of phrases, and makes one call in each step, so
// that a call can use the results of earlier calls. A call that fails or is denied does not
// stop the others. Planner calls only tools that the request offers.
type Planner struct{}

// Respond implements [Responder].
func (Planner) Respond(_ context.Context, req *Request) Answer { return plan(req.Chat) }

// pastCall is a call since the last user message of a conversation, with its result.
type pastCall struct {
	openai.FunctionCall
	result    string
	hasResult bool
}

// actionsOf returns the calls that carry out the phrases with the offered tools, and how many there
// are up to each phrase; zero: no tool for the phrase is offered. Before the first edit of a file
// that no earlier phrase reads or writes, it adds a read of the file if file_read is offered, because
// the host requires that of every model.
func actionsOf(phrases []phrase, offered map[string]bool) (todo []action, upTo []int) {
	upTo = make([]int, len(phrases))
	seen := map[string]bool{}
	for i, p := range phrases {
		a, ok := p.choose(offered)
		if !ok {
			continue
		}
		if a.path != "" && strings.HasPrefix(a.tool, "file_") {
			if a.tool == "file_edit" && !seen[a.path] && offered["file_read"] {
				todo = append(todo, newAction("file_read", "path", a.path))
			}
			seen[a.path] = true
		}
		todo = append(todo, a)
		upTo[i] = len(todo)
	}
	return todo, upTo
}

// plan returns the planner's answer to a conversation.
func plan(chat openai.ChatCompletionRequest) Answer {
	prompt, calls, limit := lastTurn(chat.Messages)
	phrases, cut := parse(prompt)
	offered := map[string]bool{}
	for _, t := range chat.Tools {
		if t.Function != nil {
			offered[t.Function.Name] = true
		}
	}
	todo, upTo := actionsOf(phrases, offered)
	if len(calls) < len(todo) && limit == "" {
		a := todo[len(calls)]
		args := string(tool.Marshal(a.args))
		return Answer{
			Calls: []openai.ToolCall{{ID: callID(prompt, len(chat.Messages)), Function: openai.FunctionCall{Name: a.tool, Arguments: args}}},
		}
	}
	answer := Answer{Text: report(phrases, upTo, cut, calls, limit)}
	if len(phrases) == 0 || slices.ContainsFunc(phrases, func(p phrase) bool { return !p.understood() }) {
		answer.Finish = openai.FinishReasonContentFilter // so that nobody takes the answer for a success
	}
	return answer
}

// callID returns the id of a call. It is the same for the same conversation, and differs in each
// step. messages is the number of messages so far.
func callID(prompt string, messages int) string {
	return fmt.Sprintf("call_%x", sha256.Sum256(fmt.Appendf(nil, "%d %s", messages, prompt)))[:5+16]
}

// lastTurn returns the last message of a user, and the calls since then with their results. limit
// is the host's message if a result says that the loop stops here; else it is empty.
func lastTurn(messages []openai.ChatCompletionMessage) (prompt string, calls []pastCall, limit string) {
	waiting := map[string]int{} // index in calls, by the id of the call
	for _, m := range messages {
		content := m.Content
		for _, part := range m.MultiContent {
			content += part.Text
		}
		switch {
		case m.Role == openai.ChatMessageRoleUser && !strings.HasPrefix(content, llm.ResultImagesHeading): // the planner sees no images
			prompt, _, _ = strings.Cut(content, "\n\n"+llm.AttachmentsHeading) // attachments are files, not phrases
			calls, limit = nil, ""
			clear(waiting)
		case m.Role == openai.ChatMessageRoleTool:
			if i, ok := waiting[m.ToolCallID]; ok {
				calls[i].result, calls[i].hasResult = content, true
			}
			if env := parseEnvelope(content); env != nil && env.LimitReached {
				limit = cmp.Or(env.LimitMessage, "the limit of the loop is reached")
			}
		}
		for _, c := range m.ToolCalls {
			waiting[c.ID] = len(calls)
			calls = append(calls, pastCall{FunctionCall: c.Function})
		}
	}
	return prompt, calls, limit
}

// report returns the text of the last answer of a turn. cut is set if the request was too long, so
// that phrases are only those of its beginning. calls are those of the turn. limit is the host's
// message about the limit that stopped the turn; empty: none did.
func report(phrases []phrase, upTo []int, cut bool, calls []pastCall, limit string) string {
	var out strings.Builder
	out.WriteString("This is the offline model: not a language model, but a planner with a few fixed phrases. ")
	if len(calls) == 0 {
		out.WriteString("It made no call.\n")
	} else {
		fmt.Fprintf(&out, "It made %s:\n", plural(len(calls), "call"))
	}
	for i, d := range calls {
		fmt.Fprintf(&out, "\n%d. %s: %s\n", i+1, llm.CallSummary(d.Name, d.Arguments), describe(d))
	}
	if limit != "" {
		fmt.Fprintf(&out, "\nIt stopped: %s\n", limit)
	}
	if cut {
		fmt.Fprintf(&out, "\nThe request was too long; only its first %d phrases were read.\n", maxPhrases)
	}

	unclear := false
	for i, p := range phrases {
		if !p.understood() {
			fmt.Fprintf(&out, "\nNot understood: %q\n", llm.Truncate(p.text, 200))
			unclear = true
			continue
		}
		if 0 < upTo[i] && upTo[i] <= len(calls) {
			continue
		}
		var names []string
		for _, a := range p.actions {
			names = append(names, a.tool)
		}
		why := "none of the tools for it is offered (" + strings.Join(names, ", ") + ")"
		if limit != "" {
			why = "there was no step left"
		}
		fmt.Fprintf(&out, "\nNot done: %q, %s\n", llm.Truncate(p.text, 200), why)
	}
	if unclear || len(phrases) == 0 {
		out.WriteString("\nIt understands these phrases, joined by \"then\" or on lines of their own:\n")
		for _, f := range forms {
			if f.usage != "" {
				out.WriteString("    " + f.usage + "\n")
			}
		}
	}
	return out.String()
}

// envelope is the part of a tool's result that the planner reads.
type envelope struct {
	Success      *bool           `json:"tool_success"`
	Result       json.RawMessage `json:"result"`
	Error        string          `json:"error"`
	Code         tool.Code       `json:"error_code"`
	Type         tool.ErrorType  `json:"error_type"`
	Hint         string          `json:"hint"`
	Rule         string          `json:"rule"`
	Allow        string          `json:"allow"`
	Stdout       string          `json:"stdout"`
	Stderr       string          `json:"stderr"`
	LimitReached bool            `json:"limit_reached"`
	LimitMessage string          `json:"limit_message"`
}

// parseEnvelope parses the envelope of a result. It returns nil if output is not an envelope.
func parseEnvelope(output string) *envelope {
	var env envelope
	if json.Unmarshal([]byte(output), &env) != nil || env.Success == nil {
		return nil
	}
	return &env
}

// describe describes the result of a call: an error in the words of the result, a success as
// describeOutput does. It quotes a result that is no envelope.
func describe(d pastCall) string {
	if !d.hasResult {
		return "no result came back."
	}
	env := parseEnvelope(d.result)
	switch {
	case env == nil:
		return quote(d.result)
	case *env.Success:
		return describeOutput(d.Name, env.Result)
	}
	verb := "failed"
	if env.Type == tool.PermissionDenied {
		verb = "was denied"
	}
	text := fmt.Sprintf("%s: %s", verb, cmp.Or(llm.Truncate(oneLine(env.Error), 500), "no message"))
	if env.Code != "" {
		text += fmt.Sprintf(" (%s)", llm.Truncate(oneLine(string(env.Code)), 64))
	}
	for _, extra := range []struct{ label, value string }{{"rule", env.Rule}, {"to allow it", env.Allow}, {"hint", env.Hint}} {
		if extra.value != "" {
			text += fmt.Sprintf("\n    %s: %s", extra.label, llm.Truncate(oneLine(extra.value), 500))
		}
	}
	for _, stream := range []struct{ label, value string }{{"stdout", env.Stdout}, {"stderr", env.Stderr}} {
		if strings.TrimSpace(stream.value) != "" {
			text += fmt.Sprintf("\n    %s, %s", stream.label, quote(stream.value))
		}
	}
	return text
}

// describeOutput describes the output of a call in a few words, because the person has seen the
// call and its result. It quotes the text of a file that was read, which is the answer, and a
// result that is no JSON object.
func describeOutput(name string, result json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(result, &fields) != nil {
		return quote(string(result))
	}
	var facts []string
	for _, name := range []string{"count", "exit_code", "bytes", "replacements"} {
		if value := fields[name]; len(value) > 0 && len(value) < 24 {
			facts = append(facts, fmt.Sprintf("%s %s", strings.ReplaceAll(name, "_", " "), value))
		}
	}
	text := ""
	if output, ok := fields["output"]; !ok || json.Unmarshal(output, &text) != nil {
		text = string(result)
	}
	switch {
	case name == "file_read":
		facts = append(facts, quote(text))
	case len(facts) == 0 && strings.TrimSpace(text) == "":
		return "empty output."
	case len(facts) == 0:
		facts = append(facts, plural(strings.Count(strings.TrimRight(text, "\n"), "\n")+1, "line"))
	}
	return strings.Join(facts, ", ")
}

const (
	quotedLines = 10  // lines that are quoted; the others are counted
	quotedRunes = 200 // characters of each quoted line, after which it is cut
)

// quote returns the number of lines of a text, and its first lines; "empty output." if it is blank.
func quote(text string) string {
	text = strings.TrimRight(text, "\r\n")
	if strings.TrimSpace(text) == "" {
		return "empty output."
	}
	total := strings.Count(text, "\n") + 1
	var out strings.Builder
	fmt.Fprintf(&out, "%s:", plural(total, "line"))
	shown := 0
	for line := range strings.Lines(text) {
		if shown == quotedLines {
			break
		}
		shown++
		out.WriteString("\n    | " + llm.Truncate(strings.TrimRight(line, "\r\n"), quotedRunes))
	}
	if rest := total - shown; rest > 0 {
		fmt.Fprintf(&out, "\n    and %s", plural(rest, "more line"))
	}
	return out.String()
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
