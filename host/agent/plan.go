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

	recentMessages  = 8    // messages at the end that are shortened last
	minCutChars     = 600  // size of the smallest message of which something is left out, in characters
	keptBytes       = 256  // bytes of the head, and of the tail, of an old result that is cut
	keptPromptBytes = 1000 // bytes of the head, and of the tail, of a person's words that are cut at first
	minPromptBytes  = 50   // more bytes than these stay even if that is not enough
	maxNoteBytes    = 50   // arguments of at most as many bytes stay; what stands for others has fewer
)

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

// reduce returns a message of a turn as a reduction leaves it, and whether it has such a part.
func reduce(m llm.Message, turn int, r session.ContextReduction) (_ llm.Message, ok bool) {
	var call llm.CallData
	var result llm.ResultData
	switch {
	case r.Part == session.PartResult && m.Kind == llm.ToolResult && json.Unmarshal(m.Data, &result) == nil:
		text := tool.PlainText(result.Output, result.Unsent)
		short := shorten(text, r, result.CallID)
		result.Output = string(tool.Marshal(map[string]any{"tool_success": result.Success, "result": map[string]string{"output": short}}))
		result.Unsent = nil
		m.Data = tool.Marshal(result)
		return m, short != text
	case r.Part == session.PartPrompt && isPrompt(m):
		m.Content = shorten(m.Content, r, TurnArtifact(turn))
	case r.Part == session.PartArguments && m.Kind == llm.ToolCall && json.Unmarshal(m.Data, &call) == nil && len(call.Function.Arguments) > maxNoteBytes:
		call.Function.Arguments = string(tool.Marshal(map[string]string{"left_out": fmt.Sprintf("%d bytes of arguments", len(call.Function.Arguments))}))
		m.Data = tool.Marshal(call)
	case r.Part == session.PartReasoning:
		m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p llm.Part) bool { return p.Type == llm.ReasoningPart })
	case r.Part == session.PartImages:
		m.Parts = slices.Clone(m.Parts)
		for k := range m.Parts {
			if m.Parts[k].Data != nil && r.Images > 0 {
				m.Parts[k].Data = nil
				r.Images--
			}
		}
	default:
		return m, false
	}
	return m, true
}

// TurnArtifact returns the name of the artifact that holds the words of a person in a turn.
func TurnArtifact(turn int) string { return fmt.Sprintf("turn:%d", turn) }

// shorten returns the head and the tail of a text that r leaves, with a note between them that
// names the artifact with the whole text; "": there is none. A text that was shortened before may be
// shortened again.
func shorten(text string, r session.ContextReduction, artifact string) string {
	head, tail := min(max(r.Head, 0), len(text)), min(max(r.Tail, 0), len(text))
	if head+tail >= len(text) {
		return text
	}
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail > 0 && !utf8.RuneStart(text[len(text)-tail]) {
		tail--
	}
	out := "[... left out ...]"
	if artifact != "" {
		out = fmt.Sprintf("[... left out; file_read with artifact %q reads all of it ...]", artifact)
	}
	if head > 0 { // with its line ends: the next cut is within it, and not within the note
		out = text[:head] + "\n" + out
	}
	if tail > 0 {
		out += "\n" + text[len(text)-tail:]
	}
	return out
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

// apply reduces message i if that makes it shorter, and reports whether it does.
func (c *Conversation) apply(i int, r session.ContextReduction) bool {
	m, ok := reduce(c.messages[i], c.about[i].turn, r)
	if !ok {
		return false
	}
	saved := c.about[i].chars - size(m)
	if saved > 0 {
		c.changes = append(c.changes, change{i, []llm.Message{c.messages[i]}, []about{c.about[i]}})
		c.messages[i] = m
		c.about[i].chars -= saved
		c.chars -= saved
		c.leftOut = LeftOut{c.leftOut.Parts + 1, c.leftOut.Chars + saved}
	}
	return saved > 0
}

// reduce applies reductions that were recorded.
func (c *Conversation) reduce(parts []session.ContextReduction) {
	c.messages, c.about = slices.Clone(c.messages), slices.Clone(c.about) // the request before has the others
	for _, r := range parts {
		if i := slices.IndexFunc(c.about, func(a about) bool { return a.number == r.Message }); i >= 0 {
			c.apply(i, r)
		}
	}
}

// try reduces message i, if that makes it shorter.
func (p *planner) try(i int, r session.ContextReduction) {
	if r.Call, r.Message = p.about[i].call, p.about[i].number; p.apply(i, r) {
		p.parts = append(p.parts, r)
	}
}

// cutResult cuts a result to at most chars characters, as far as that is possible.
func (p *planner) cutResult(i, chars int) {
	for head := chars / 2; p.about[i].chars > chars; {
		r := session.ContextReduction{Part: session.PartResult, Head: head, Tail: head}
		m, cut := reduce(p.messages[i], 0, r)
		got := size(m)
		if cut && got <= chars || head == 0 {
			p.try(i, r)
			return
		}
		if !cut {
			got = max(got, chars*8/7+1)
		}
		head = head * chars / got
	}
}

// plan leaves out what can be had again, if the request is above the target, until a quarter of
// the target is free: the following requests then begin like this one, so that the provider's
// cache stays useful. First come old results, then the arguments of calls, old thoughts and old
// images. A result that no model has read yet is cut to resultChars. The result is false if a
// later step would soon be above the target again.
func (p *planner) plan(b budget, resultChars int) bool {
	p.limitImages()
	for i := range p.messages {
		if p.unread(i) {
			p.cutResult(i, resultChars)
		}
	}
	if p.chars <= b.target {
		return true
	}
	for _, r := range []session.ContextReduction{
		{Part: session.PartResult, Head: keptBytes, Tail: keptBytes},
		{Part: session.PartArguments},
		{Part: session.PartReasoning},
		{Part: session.PartImages, Images: maxImages},
		{Part: session.PartResult},
	} {
		for _, i := range p.old() {
			if p.chars <= b.target-b.target/4 {
				return true
			}
			if r.Part != session.PartReasoning || p.about[i].turn < p.turn {
				p.try(i, r)
			}
		}
	}
	return p.chars <= b.target-b.target/8
}

// old returns the indexes of messages that were read and may be reduced, in the order in which
// they are: the largest and oldest first, and the newest messages behind all others.
func (p *planner) old() (out []int) {
	for i, a := range p.about {
		if a.number <= p.read && a.chars > minCutChars && !p.facts.taskCalls[a.call] {
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
	var sizes []int // of all images, in bytes
	bytes := 0
	for _, m := range p.messages {
		for _, part := range m.Parts {
			if part.Data != nil {
				sizes, bytes = append(sizes, len(part.Data)), bytes+len(part.Data)
			}
		}
	}
	if len(sizes) <= maxImages && bytes <= maxImagesBytes {
		return
	}
	for i, m := range p.messages {
		drop := 0
		for _, part := range m.Parts {
			if part.Data != nil && len(sizes) > 1 && (len(sizes) > maxImages/2 || bytes > maxImagesBytes/2) {
				drop, sizes, bytes = drop+1, sizes[1:], bytes-sizes[0]
			}
		}
		p.try(i, session.ContextReduction{Part: session.PartImages, Images: drop})
	}
}

// unread reports whether message i is a result that no model has read yet.
func (c *Conversation) unread(i int) bool {
	return c.messages[i].Kind == llm.ToolResult && c.about[i].number > c.read
}

// fresh returns the indexes of the results that no model has read yet, and the characters that the
// other messages leave of the target.
func (p *planner) fresh(b budget) (fresh []int, rest int) {
	rest = b.target - b.target/8 - p.chars
	for i := range p.messages {
		if p.unread(i) {
			fresh, rest = append(fresh, i), rest+p.about[i].chars
		}
	}
	return fresh, rest
}

// share cuts the results that no model has read yet, so that they have equal parts of what is
// left; a smaller result stays whole. Then, if the request is still above the target, it cuts the
// words of a person from the oldest on, but neither the first nor the newest.
func (p *planner) share(b budget) {
	if p.chars > b.target {
		fresh, rest := p.fresh(b)
		slices.SortStableFunc(fresh, func(i, j int) int { return cmp.Compare(p.about[i].chars, p.about[j].chars) })
		for k, i := range fresh {
			p.cutResult(i, max(rest, 0)/(len(fresh)-k))
			rest -= p.about[i].chars
		}
		for _, i := range fresh {
			if p.chars > b.target {
				p.try(i, session.ContextReduction{Part: session.PartImages, Images: maxImages})
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
