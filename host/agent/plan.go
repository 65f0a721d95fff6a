package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// budget limits the conversation in one request, in characters.
type budget struct {
	target int // size from which parts are left out, so that there is room for an answer
	limit  int // size that no request exceeds; at least target
}

const (
	// imageChars is the size of an image in characters: providers count some 1,500 tokens for
	// one, independent of its bytes.
	imageChars = 6000
	// maxImages and maxImagesBytes limit the images in a request; above, the oldest are
	// dropped. Anthropic's API limits images to 2000 pixels a side if there are more than 20,
	// and Google's takes 20 MB of base64 and text:
	// https://docs.claude.com/en/docs/build-with-claude/vision,
	// https://ai.google.dev/gemini-api/docs/image-understanding.
	maxImages      = 20
	maxImagesBytes = 12 << 20

	// recentMessages is the number of messages at the end that are shortened last.
	recentMessages = 8
	// keptBytes is the size of the head and of the tail of an old result that is cut, in bytes.
	keptBytes = 256
	// keptPromptBytes is the size of the head and of the tail of a person's words that are cut;
	// more than minPromptBytes stay even if that is not enough.
	keptPromptBytes, minPromptBytes = 1000, 50
	// minCutChars is the size of the smallest result and of the smallest arguments that a note
	// replaces, in characters.
	minCutChars = 600
)

// cut describes a shortened text: the bytes of the whole text, and of the head and the tail that are
// left. Zero: the text was not shortened.
type cut struct{ whole, head, tail int }

// size returns the size of a message in a request, in characters: one for each byte of text
// that the model reads, and imageChars for each image.
func size(m llm.Message) (n int) {
	var call llm.CallData
	var result llm.ResultData
	switch {
	case m.Kind == llm.ToolCall && json.Unmarshal(m.Data, &call) == nil:
		n = len(call.ID) + len(call.Function.Name) + len(call.Function.Arguments)
	case m.Kind == llm.ToolResult && json.Unmarshal(m.Data, &result) == nil:
		n = len(result.CallID) + len(tool.ForModel(result.Output, result.Unsent))
	default:
		n = len(m.Content)
	}
	for _, part := range m.Parts {
		if n += len(part.Text); part.ProviderData != nil {
			n += len(part.ProviderData.Data)
		}
		if part.Data != nil {
			n += imageChars
		}
	}
	return n
}

// isPrompt reports whether a message holds the words of a person.
func isPrompt(m llm.Message) bool {
	return m.Kind == llm.User && (m.Data == nil || m.IsDuringTurn())
}

// reduce returns a message as a reduction leaves it, and the facts about it.
func reduce(m llm.Message, a about, r session.ContextReduction) (llm.Message, about) {
	var call llm.CallData
	var result llm.ResultData
	switch {
	case r.Part == session.PartResult && m.Kind == llm.ToolResult && json.Unmarshal(m.Data, &result) == nil:
		text := ""
		text, a.cut = shorten(resultText(result, a), a.cut, r, result.CallID)
		result.Output = string(tool.Marshal(map[string]any{"tool_success": result.Success, "result": map[string]any{"output": text, "truncated": true}}))
		result.Unsent = nil
		m.Data = tool.Marshal(result)
	case r.Part == session.PartPrompt && isPrompt(m):
		m.Content, a.cut = shorten(m.Content, a.cut, r, TurnArtifact(a.turn))
	case r.Part == session.PartArguments && m.Kind == llm.ToolCall && !a.noArgs && json.Unmarshal(m.Data, &call) == nil:
		call.Function.Arguments = string(tool.Marshal(map[string]string{"left_out": fmt.Sprintf("%d bytes of arguments", len(call.Function.Arguments))}))
		m.Data, a.noArgs = tool.Marshal(call), true
	case r.Part == session.PartReasoning:
		m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p llm.Part) bool { return p.Type == llm.ReasoningPart })
	case r.Part == session.PartImages:
		m.Parts = slices.Clone(m.Parts)
		for k := range m.Parts {
			if m.Parts[k].Type == llm.ImagePart && m.Parts[k].Data != nil && r.Images > 0 {
				m.Parts[k].Data = nil
				r.Images--
			}
		}
	}
	a.chars = size(m)
	return m, a
}

// TurnArtifact returns the name of the artifact that holds the words of a person in a turn.
func TurnArtifact(turn int) string { return fmt.Sprintf("turn:%d", turn) }

// resultText returns the text of a result that a reduction cuts.
func resultText(data llm.ResultData, a about) string {
	if a.cut.whole == 0 {
		return tool.PlainText(data.Output, data.Unsent)
	}
	var e struct {
		Result struct{ Output string }
	}
	_ = json.Unmarshal([]byte(data.Output), &e) // reduce has written it
	return e.Result.Output
}

// shorten returns the head and the tail of a text that r leaves, with a note between them that
// names the artifact with the whole text. before is the cut of text itself.
func shorten(text string, before cut, r session.ContextReduction, artifact string) (string, cut) {
	whole, head, tail := len(text), len(text), len(text)
	if before.whole > 0 {
		whole, head, tail = before.whole, before.head, before.tail
	}
	head, tail = min(max(r.Head, 0), head), min(max(r.Tail, 0), tail)
	for head > 0 && head < len(text) && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail > 0 && tail < len(text) && !utf8.RuneStart(text[len(text)-tail]) {
		tail--
	}
	out := fmt.Sprintf("[... %d of %d bytes left out; file_read with artifact %q reads them ...]", max(whole-head-tail, 0), whole, artifact)
	if head > 0 {
		out = text[:head] + "\n" + out
	}
	if tail > 0 {
		out += "\n" + text[len(text)-tail:]
	}
	return out, cut{whole, head, tail}
}

// planner finds out which parts of a conversation a request leaves out. It changes copies of the
// messages only.
type planner struct {
	Conversation
	parts []session.ContextReduction
}

func (c *Conversation) planner() *planner {
	p := &planner{Conversation: *c}
	p.messages, p.about = slices.Clone(c.messages), slices.Clone(c.about)
	return p
}

// reduce applies reductions that were recorded.
func (c *Conversation) reduce(parts []session.ContextReduction) {
	c.messages, c.about = slices.Clone(c.messages), slices.Clone(c.about) // a turn to go back to has the others
	for _, r := range parts {
		ofResult := r.Part == session.PartResult || r.Part == session.PartImages
		for i, a := range slices.Backward(c.about) {
			if r.Call != "" && a.call == r.Call && (c.messages[i].Kind == llm.ToolResult) == ofResult || r.Call == "" && a.number == r.Message {
				c.messages[i], c.about[i] = reduce(c.messages[i], a, r)
				c.chars += c.about[i].chars - a.chars
				c.leftOut = LeftOut{c.leftOut.Parts + 1, c.leftOut.Chars + a.chars - c.about[i].chars}
				break
			}
		}
	}
}

// unread reports whether message i is a result that no model has read yet.
func (c *Conversation) unread(i int) bool {
	return c.messages[i].Kind == llm.ToolResult && c.about[i].number > c.read
}

// try reduces message i, if that makes it shorter.
func (p *planner) try(i int, r session.ContextReduction) {
	m, a := reduce(p.messages[i], p.about[i], r)
	if a.chars >= p.about[i].chars {
		return
	}
	if r.Call = a.call; r.Call == "" {
		r.Message = a.number
	}
	p.chars += a.chars - p.about[i].chars
	p.messages[i], p.about[i] = m, a
	p.parts = append(p.parts, r)
}

// cutResult cuts a result until it has at most chars characters, as far as that is possible, but
// leaves keep bytes at both ends.
func (p *planner) cutResult(i, keep, chars int) {
	for head := max(chars/2, keep); p.about[i].chars > chars; head = max(head*7/8, keep) {
		r := session.ContextReduction{Part: session.PartResult, Head: head, Tail: head}
		if _, a := reduce(p.messages[i], p.about[i], r); a.chars <= chars || head == keep {
			p.try(i, r)
			return
		}
	}
}

// plan leaves out what can be had again, if the request is above the target, until a quarter of
// the target is free: the following requests then begin like this one, so that the provider's
// cache stays useful. First come old results, the largest and oldest first, then the arguments
// of calls, old thoughts and old images. A result that no model has read yet is cut to
// resultChars. The result is false if a later step would soon be above the target again.
func (p *planner) plan(b budget, resultChars int) bool {
	p.limitImages()
	for i := range p.messages {
		if p.unread(i) && p.about[i].chars > resultChars {
			p.cutResult(i, 0, resultChars)
		}
	}
	if p.chars <= b.target {
		return true
	}
	enough := b.target - b.target/4
	for _, level := range []struct {
		matches func(i int) bool
		reduce  func(i int)
	}{
		{func(i int) bool { return p.isOld(i, llm.ToolResult) && p.about[i].chars > 2*keptBytes+2*minCutChars }, func(i int) { p.cutResult(i, keptBytes, 0) }},
		{func(i int) bool { return p.isOld(i, llm.ToolCall) }, func(i int) { p.try(i, session.ContextReduction{Part: session.PartArguments}) }},
		{func(i int) bool { return p.about[i].turn < p.turn }, func(i int) { p.try(i, session.ContextReduction{Part: session.PartReasoning}) }},
		{func(i int) bool { return p.about[i].number <= p.read }, p.leaveOutImages},
		{func(i int) bool { return p.isOld(i, llm.ToolResult) }, func(i int) { p.cutResult(i, 0, 0) }},
	} {
		for _, i := range p.ordered(level.matches) {
			if p.chars <= enough {
				return true
			}
			level.reduce(i)
		}
	}
	return p.chars <= b.target-b.target/8
}

// isOld reports whether message i has a kind, was read, and may be shortened.
func (p *planner) isOld(i int, kind llm.Kind) bool {
	return p.messages[i].Kind == kind && p.about[i].number <= p.read && p.about[i].chars > minCutChars && !p.facts.taskCalls[p.about[i].call]
}

func (p *planner) leaveOutImages(i int) {
	p.try(i, session.ContextReduction{Part: session.PartImages, Images: len(p.messages[i].Parts)})
}

// ordered returns the indexes of messages in the order in which they are reduced: the largest
// and oldest first, and the newest messages behind all others.
func (p *planner) ordered(matches func(i int) bool) []int {
	var out []int
	for i := range p.messages {
		if matches(i) {
			out = append(out, i)
		}
	}
	recent, weight := len(p.messages)-recentMessages, func(i int) int { return p.about[i].chars * (len(p.messages) - i) }
	slices.SortStableFunc(out, func(i, j int) int {
		if (i >= recent) != (j >= recent) {
			return cmp.Compare(i, j)
		}
		return cmp.Compare(weight(j), weight(i))
	})
	return out
}

// limitImages leaves out the oldest images if there are more than a request may hold. It leaves
// out more than needed, down to half of the limits, for the provider's cache. The newest image
// stays.
func (p *planner) limitImages() {
	for divisor := 1; divisor <= 2; divisor++ { // to count, and to leave out
		number, bytes, over := 0, 0, false
		for i := range slices.Backward(p.messages) {
			drop := 0
			for _, part := range slices.Backward(p.messages[i].Parts) {
				if part.Data != nil {
					number, bytes = number+1, bytes+len(part.Data)
					if number > 1 && (number > maxImages/divisor || bytes > maxImagesBytes/divisor) {
						drop++
					}
				}
			}
			if over = over || drop > 0; divisor == 2 {
				p.try(i, session.ContextReduction{Part: session.PartImages, Images: drop})
			}
		}
		if !over {
			return
		}
	}
}

// share cuts the results that no model has read yet, so that they have equal parts of what the
// other messages leave of the target; a smaller result stays whole. Then, if the request is
// still above the limit, it cuts the words of a person from the oldest on, but neither the first
// nor the newest.
func (p *planner) share(b budget) {
	var fresh []int
	rest := b.target - b.target/8 - p.chars
	for i := range p.messages {
		if p.unread(i) {
			fresh, rest = append(fresh, i), rest+p.about[i].chars
		}
	}
	if p.chars > b.target {
		slices.SortStableFunc(fresh, func(i, j int) int { return cmp.Compare(p.about[i].chars, p.about[j].chars) })
		for k, i := range fresh {
			p.cutResult(i, 0, max(rest, 0)/(len(fresh)-k))
			rest -= p.about[i].chars
		}
		for _, i := range fresh {
			if p.chars > b.target {
				p.leaveOutImages(i)
			}
		}
	}
	var prompts []int
	for i, m := range p.messages {
		if isPrompt(m) {
			prompts = append(prompts, i)
		}
	}
	for keep := keptPromptBytes; keep > minPromptBytes; keep /= 4 {
		for k, i := range prompts {
			if p.chars > b.target && k > 0 && k < len(prompts)-1 {
				p.try(i, session.ContextReduction{Part: session.PartPrompt, Head: keep, Tail: keep})
			}
		}
	}
}
