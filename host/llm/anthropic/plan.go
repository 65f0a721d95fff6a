package anthropic

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/tool"
)

// maxTokens is the most that an answer may have, thinking included. The API wants a
// number. Each model since Claude 3.7 takes this one but for Opus 4 and 4.1; those, and what
// others serve, say how much they take. Room that is not used costs nothing.
const maxTokens = 64_000

// thinking is the form in which a model is asked to think.
type thinking string

const (
	thinkingDefault  thinking = ""         // as it does by itself
	thinkingAdaptive thinking = "adaptive" // as much as it needs, with an effort: Claude 4.6 and later
	thinkingBudgeted thinking = "enabled"  // within a budget: before that
)

// maxTries is how often a request is sent in one form or another: a server may refuse the
// number of tokens, the form of thinking and a signature.
const maxTries = 5

// budgets are the tokens of thinking that stand for an effort.
var budgets = map[string]int64{"low": 4_096, "medium": 16_384, "high": 32_000}

// leastBudget is what the API takes. A model that writes so little does not think, too.
const leastBudget = 1024

// thinkingOf is the form that a model takes, by its name. A server that refuses it is asked in
// the other one.
func thinkingOf(model string) thinking {
	for _, old := range []string{"claude-3-7", "-4-0", "-4-1", "-4-5", "-4-2025"} {
		if strings.Contains(model, old) {
			return thinkingBudgeted
		}
	}
	return thinkingAdaptive
}

// serverLimits is what servers have refused, so that it is not asked again.
type serverLimits struct {
	maxTokens       map[string]int64    // by model
	thinking        map[string]thinking // by model
	refusedThinking map[[32]byte]bool   // what was kept with thinking; never changed, but replaced
	changes         int                 // of forgotten
}

// plan is how a request is made.
type plan struct {
	maxTokens    int64
	oneOff       bool // maxTokens is for this request only
	thinking     thinking
	triedBoth    bool // both forms of thinking were tried
	hasThinking  bool // there is thinking to send
	omitThinking bool // it is not sent
}

// ask sends a request. If a server refuses how it was made, it is made otherwise; what
// works then is remembered. If nothing does, the first error is the one that helps.
func (m *Model) ask(x *provider.Exchange, s settings, entries []*llm.Entry) error {
	p := m.plan(s.model, entries)
	var first error
	for tries := 1; ; tries++ {
		err := m.send(x, s, p, entries)
		if err == nil {
			m.learn(s.model, p, entries)
			return nil
		}
		if first == nil {
			first = err
		}
		failure, ok := errors.AsType[*llm.ProviderError](err)
		if !ok || tries == maxTries || !p.adapt(failure) {
			return first
		}
	}
}

func (m *Model) plan(model string, entries []*llm.Entry) plan {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := plan{maxTokens: maxTokens}
	for _, e := range entries {
		p.hasThinking = p.hasThinking || slices.ContainsFunc(e.Parts, func(part llm.Part) bool { return part.ProviderData.IsFrom(providerName, model) })
	}
	if n, ok := m.limits.maxTokens[model]; ok {
		p.maxTokens = n
	}
	if m.ReasoningEffort != "" {
		p.thinking = thinkingOf(model)
		if form, ok := m.limits.thinking[model]; ok {
			p.thinking = form
		}
	}
	return p
}

// adapt changes the plan to one that a server might take which has refused it so.
func (p *plan) adapt(failure *llm.ProviderError) bool {
	if failure.Status != http.StatusBadRequest && failure.Status != http.StatusUnprocessableEntity {
		return false
	}
	said := strings.ToLower(failure.Message)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) })
	}
	switch {
	case has("must start with a thinking block") && p.thinking == thinkingBudgeted:
		// Of a turn that another model has begun, or whose thinking is not sent any more.
		p.thinking, p.triedBoth = thinkingDefault, true
		return true
	case has("thinking block", "`thinking` block", "redacted_thinking", "signature") && p.hasThinking && !p.omitThinking:
		// It is bound to the model, and with newer ones to all that came before it: a
		// conversation that was cut has thinking of another.
		p.omitThinking = true
		return true
	case has("max_tokens"):
		n, brief := parseAllowedTokens(said, p.maxTokens)
		if n == 0 {
			return false
		}
		p.maxTokens, p.oneOff = n, p.oneOff || brief
		return true
	case has("thinking", "effort") && p.thinking != thinkingDefault && !p.triedBoth:
		p.triedBoth = true
		if p.thinking == thinkingAdaptive {
			p.thinking = thinkingBudgeted
		} else {
			p.thinking = thinkingAdaptive
		}
		return true
	}
	return false
}

var numbers = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9]+`) })

// parseAllowedTokens is how many tokens a server takes that has refused so many; 0 if it does not
// say. It is brief if that depends on the conversation. Servers write
// "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens", "the
// valid range is [1, 8192]", or "exceed context limit: 188240 + 64000 > 200000".
func parseAllowedTokens(said string, refused int64) (n int64, brief bool) {
	const least = 256 // less is another number, or no answer
	var all []int64
	for _, text := range numbers().FindAllString(said, 20) {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			all = append(all, n)
		}
	}
	if i := slices.Index(all, refused); strings.Contains(said, "context") && i > 0 && i+1 < len(all) {
		n, brief = all[i+1]-all[i-1], true
	} else {
		for _, a := range all {
			if a < refused {
				n = max(n, a)
			}
		}
	}
	if n < least || n >= refused {
		return 0, false
	}
	return n, brief
}

// learn remembers what a server takes.
func (m *Model) learn(model string, p plan, entries []*llm.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.maxTokens != maxTokens && !p.oneOff {
		if m.limits.maxTokens == nil {
			m.limits.maxTokens = map[string]int64{}
		}
		m.limits.maxTokens[model] = p.maxTokens
	}
	if p.triedBoth && p.thinking != thinkingDefault {
		if m.limits.thinking == nil {
			m.limits.thinking = map[string]thinking{}
		}
		m.limits.thinking[model] = p.thinking
	}
	if p.omitThinking {
		forgotten := map[[32]byte]bool{}
		maps.Copy(forgotten, m.limits.refusedThinking)
		for _, e := range entries {
			for _, part := range e.Parts {
				if part.ProviderData.IsFrom(providerName, model) {
					forgotten[sha256.Sum256(part.ProviderData.Data)] = true
				}
			}
		}
		m.limits.refusedThinking = forgotten
		m.limits.changes++
	}
}

// send sends a request as it is planned.
func (m *Model) send(x *provider.Exchange, s settings, p plan, entries []*llm.Entry) error {
	m.mu.Lock()
	v := blockEncoder{model: s.model, images: &m.images, refusedThinking: m.limits.refusedThinking, omitThinking: p.omitThinking}
	version := strings.Join([]string{s.model, m.images.Version(), strconv.Itoa(m.limits.changes)}, "\x00")
	m.mu.Unlock()
	list := conversation(entries, func(e *llm.Entry) []byte {
		if p.omitThinking {
			return v.blocks(e) // of one request
		}
		return e.Encode(version, v.blocks)
	})
	s.maxTokens, s.thinking = p.maxTokens, p.thinking
	envelope, err := m.templateFor(s)
	if err != nil {
		return err
	}
	return x.Post("/v1/messages", m.header(), list.SpliceInto(envelope, placeholderMessage()))
}

// templateFor is the envelope of the settings, which is that of the last request most times.
func (m *Model) templateFor(s settings) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.template == nil || !m.template.settings.same(s) {
		made, err := newRequestTemplate(s)
		if err != nil {
			return nil, err
		}
		m.template = made
	}
	return m.template.body, nil
}

// settings are what a request says beside its conversation, but for what is planned.
func (m *Model) settings(req llm.Request, entries []*llm.Entry) settings {
	s := settings{model: m.ModelOf(req), effort: m.ReasoningEffort, system: systemTexts(entries), tools: req.Tools}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(s.tools) > 0 {
		if !sameTools(m.tools, s.tools) {
			m.tools = slices.Clone(s.tools)
			for i := range m.tools {
				m.tools[i].Parameters = bytes.Clone(m.tools[i].Parameters)
			}
		}
		s.tools = m.tools
		return s
	}
	// The API refuses calls in a conversation of a request without tools. Those of the
	// request before this keep what was cached.
	if called := calledTools(entries); called != nil {
		s.tools, s.noCalls = m.tools, true
		for _, def := range called {
			if !slices.ContainsFunc(s.tools, func(d tool.Definition) bool { return d.Name == def.Name }) {
				s.tools = append(slices.Clip(s.tools), def)
			}
		}
	}
	return s
}
