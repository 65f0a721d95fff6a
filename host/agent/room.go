package agent

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
)

const (
	// AssumedContextTokens is the size of a model's context if nobody knows it, in tokens.
	AssumedContextTokens = 128_000
	// smallTokens is the size of a request below which no server is asked for the size of its
	// context, in tokens.
	smallTokens = 16_000
	// maxAnswerTokens is the largest part of a context that stays free for an answer, in tokens.
	maxAnswerTokens = 16_384

	// Characters of a conversation per token. The first counts before a provider has reported a
	// number of tokens, and the others bound the number that follows from a report.
	usualCharsPerToken, minCharsPerToken, maxCharsPerToken = 3, 2, 6
	// A report is believed if it is within these characters per token.
	minReportedCharsPerToken, maxReportedCharsPerToken = 1, 16
)

// charsFor returns the size that a conversation may have with a number of tokens, in characters.
// tools is the size of the definitions of tools, which a request has beside the conversation.
// The newest report of a provider is exact for its messages; the others are estimated with the
// same ratio of characters to tokens.
func (r reported) charsFor(tokens, tools int) int {
	known, ratio := r.ratio(tools)
	return known.chars + int(float64(tokens-known.tokens)*ratio)
}

// tokensFor returns the tokens of a request with a conversation of a number of characters.
func (r reported) tokensFor(chars, tools int) int {
	known, ratio := r.ratio(tools)
	return max(known.tokens+int(math.Ceil(float64(chars-known.chars)/ratio)), 0)
}

// ratio returns a size that is known, and the characters per token of everything beside it.
func (r reported) ratio(tools int) (known reported, charsPerToken float64) {
	whole := r.chars + tools
	switch {
	case r.tokens <= 0:
		return reported{0, -tools}, usualCharsPerToken
	case whole < r.tokens*minReportedCharsPerToken:
		return reported{0, -tools}, minCharsPerToken
	case whole > r.tokens*maxReportedCharsPerToken:
		return reported{0, -tools}, maxCharsPerToken
	}
	return r, min(max(float64(whole)/float64(r.tokens), minCharsPerToken), maxCharsPerToken)
}

// toolChars returns the size of the definitions of the tools, in characters.
func (a *Agent) toolChars() (n int) {
	for _, d := range a.tools {
		n += len(d.Name) + len(d.Description) + len(d.Parameters)
	}
	return n
}

// budget returns the limits for the conversation in the next request. A tenth of the model's
// context is a reserve, because tokens are estimated.
func (a *Agent) budget(contextTokens int) (b budget, key string) {
	contextTokens = cmp.Or(contextTokens, AssumedContextTokens)
	if n := a.refusedTokens; n > 0 {
		contextTokens = min(contextTokens, n)
	}
	tools := a.toolChars()
	usable := contextTokens - contextTokens/10
	answer := min(contextTokens/8, maxAnswerTokens)
	r := a.conversation.reported
	b, key = budget{r.charsFor(usable-answer, tools), r.charsFor(usable, tools)}, "context_tokens"
	if n := a.opts.HistoryChars; n > 0 && n < b.limit {
		b, key = budget{min(b.target, n), n}, "history_char_budget"
	}
	return b, key
}

// makeRoom records what the next request leaves out: parts of messages, and if they are not enough,
// a summary in place of messages. tooLong is set if the provider has refused a request as too
// long, which is then summarized if anything in it can be. The error is a *limitError if the
// request would be too large all the same.
func (t *turn) makeRoom(ctx context.Context, tooLong bool) error {
	c := &t.a.conversation
	t.findContextTokens(ctx, 0)
	b, key := t.a.budget(t.contextTokens())
	resultChars := t.a.opts.ResultTokens * usualCharsPerToken
	p := c.planner()
	enough := p.plan(b, resultChars)
	if _, chars := c.compaction(); chars > minReplacedChars && (tooLong || !enough && p.crowded(b) && chars > b.target/8) {
		if err := t.compact(ctx, b, ""); err != nil {
			return err
		}
		b, key = t.a.budget(t.contextTokens())
		p = c.planner()
		p.plan(b, resultChars)
	}
	p.share(b)
	if len(p.parts) > 0 {
		if err := t.record(ctx, t.draft(session.TypeContextReduced, "", session.ContextReduced{Chars: c.chars - p.chars, Parts: p.parts})); err != nil {
			return err
		}
	}
	if c.chars > b.limit {
		return &limitError{key}
	}
	return nil
}

// errSmallerContext ends a request before a model is asked that stands in for another, and whose
// context is too small for the request.
var errSmallerContext = errors.New("the request is too large for the next model")

// fits reports whether the conversation is within the budget of the model that is asked next.
func (t *turn) fits(ctx context.Context) bool {
	t.findContextTokens(ctx, 0)
	b, _ := t.a.budget(t.contextTokens())
	return t.a.conversation.chars <= b.limit
}

// crowded reports whether the messages that stay leave the results that no model has read yet
// less than a quarter of the target.
func (p *planner) crowded(b budget) bool {
	rest, unread := b.target-b.target/8-p.chars, false
	for i := range p.messages {
		if p.unread(i) {
			rest, unread = rest+p.about[i].chars, true
		}
	}
	return !unread && rest < 0 || rest < b.target/4
}

// contextTokens returns the size of the context of the model that is asked next, in tokens; 0: it
// is not known.
func (t *turn) contextTokens() int {
	if t.fallback != nil {
		return cmp.Or(t.fallback.ContextTokens, t.a.contextTokens[t.fallback.Model])
	}
	return cmp.Or(t.a.opts.ContextTokens, t.a.contextTokens[t.a.opts.Model])
}

// findContextTokens asks the server for the size of the model's context, once for each model, as
// soon as a request has smallTokens. prompt is the size of a message that is not in the
// conversation yet, in characters.
func (t *turn) findContextTokens(ctx context.Context, prompt int) {
	model, name := t.a.opts.Model, t.a.opts.ModelName
	if t.fallback != nil {
		model, name = t.fallback.Model, t.fallback.Name
	}
	c := &t.a.conversation
	if _, asked := t.a.contextTokens[model]; asked || t.contextTokens() > 0 || c.reported.tokensFor(c.chars+prompt, t.a.toolChars()) < smallTokens {
		return
	}
	t.a.contextTokens[model] = llm.ContextSizeOf(ctx, model, llm.Request{Model: name, Messages: c.messages})
}

// checkPrompt returns a *limitError if the message of a prompt is too large for a request, even
// if the request leaves out everything that can be left out.
func (t *turn) checkPrompt(ctx context.Context, prompt llm.Message, others int) error {
	t.findContextTokens(ctx, size(prompt)+others)
	b, key := t.a.budget(t.contextTokens())
	for _, m := range t.a.conversation.messages {
		if m.Kind == llm.System {
			others += size(m)
		}
	}
	if size(prompt)+others > b.limit {
		return &limitError{key}
	}
	return nil
}

// noteRefusal notes that the provider has refused the request as too long: the context is
// smaller than it was believed to be.
func (t *turn) noteRefusal() {
	a := t.a
	tokens := a.conversation.reported.tokensFor(a.conversation.chars, a.toolChars())
	a.refusedTokens = min(cmp.Or(a.refusedTokens, tokens), tokens) * 9 / 10
}
