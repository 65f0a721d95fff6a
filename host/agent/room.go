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
	AssumedContextTokens = 128_000 // size of a model's context if nobody knows it, in tokens

	smallTokens     = 16_000 // tokens of a request below which no server is asked for the size of its context
	maxAnswerTokens = 16_384 // largest part of a context that stays free for an answer, in tokens

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
	if r.tokens <= 0 {
		return reported{0, -tools}, usualCharsPerToken
	}
	ratio := float64(r.chars+tools) / float64(r.tokens)
	if ratio < minReportedCharsPerToken || ratio > maxReportedCharsPerToken {
		r = reported{0, -tools}
	}
	return r, min(max(ratio, minCharsPerToken), maxCharsPerToken)
}

// toolChars returns the size of the definitions of the tools, in characters.
func (a *Agent) toolChars() (n int) {
	for _, d := range a.tools {
		n += len(d.Name) + len(d.Description) + len(d.Parameters)
	}
	return n
}

// model returns the model that is asked next.
func (t *turn) model() llm.Alternative {
	if t.fallback != nil {
		return *t.fallback
	}
	o := t.a.opts
	return llm.Alternative{Provider: o.Provider, Name: o.ModelName, Model: o.Model, ContextTokens: o.ContextTokens, Price: o.Price}
}

// contextTokens returns the size of the context of a model, in tokens; 0: it is not known. If ask
// is set, it asks the server, once for each model.
func (a *Agent) contextTokens(ctx context.Context, m llm.Alternative, ask bool) int {
	if _, asked := a.askedTokens[m.Model]; ask && !asked && m.ContextTokens <= 0 {
		a.askedTokens[m.Model] = llm.ContextSizeOf(ctx, m.Model, llm.Request{Model: m.Name, Messages: a.conversation.messages})
	}
	return cmp.Or(m.ContextTokens, a.askedTokens[m.Model])
}

// budget returns the limits for the conversation in the next request, and the key of the limit in
// agent.toml. A tenth of the model's context is a reserve, because tokens are estimated. prompt is
// the size of a message that is not in the conversation yet, in characters.
func (t *turn) budget(ctx context.Context, prompt int) (b budget, key string) {
	a, c, tools := t.a, &t.a.conversation, t.a.toolChars()
	tokens := cmp.Or(a.contextTokens(ctx, t.model(), c.reported.tokensFor(c.chars+prompt, tools) >= smallTokens), AssumedContextTokens)
	tokens = min(tokens, cmp.Or(a.refusedTokens, tokens))
	usable := tokens - tokens/10
	answer := min(tokens/8, maxAnswerTokens)
	b, key = budget{c.reported.charsFor(usable-answer, tools), c.reported.charsFor(usable, tools)}, "context_tokens"
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
	for compacted := false; ; compacted = true {
		b, key := t.budget(ctx, 0)
		p := c.planner()
		enough := p.plan(b, t.a.opts.ResultTokens*usualCharsPerToken)
		_, rest := p.fresh(b)
		crowded := rest < b.target/4 // the results that no model has read would get less than a quarter
		if _, _, chars := c.compaction(); !compacted && chars > minReplacedChars && (tooLong || !enough && crowded && chars > b.target/8) {
			if err := t.compact(ctx, b, ""); err != nil {
				return err
			}
			continue
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
}

// errSmallerContext ends a request before a model is asked that stands in for another, and whose
// context is too small for the request.
var errSmallerContext = errors.New("the request is too large for the next model")

// checkPrompt returns a *limitError if the first messages of a turn are too large for a request,
// even if the request leaves out everything that can be left out.
func (t *turn) checkPrompt(ctx context.Context, first []llm.Message) error {
	after := t.a.conversation
	for _, m := range first {
		after.append(m, "")
	}
	b, key := t.budget(ctx, after.chars-t.a.conversation.chars)
	chars := size(first[len(first)-1])
	for i, replaced := range after.replaced(after.numbered) {
		if !replaced && !isPrompt(after.messages[i]) {
			chars += after.about[i].chars
		}
	}
	if chars > b.limit {
		return &limitError{key}
	}
	return nil
}
