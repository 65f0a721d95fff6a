package anthropic

import (
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

// maxTokens limits the tokens of an answer, thinking included; the server cuts a longer answer.
// The API requires such a limit. Each model since Claude 3.7 takes this one, except Opus 4 and
// 4.1. Those, and models of other servers, name their own limit when they refuse a request.
// Unused tokens cost nothing.
const maxTokens = 64_000

// thinking is the form in which a request asks a model to think.
type thinking string

const (
	thinkingDefault  thinking = ""         // not asked for: the model's default
	thinkingAdaptive thinking = "adaptive" // as much as the model needs, with an effort: Claude 4.6 and later
	thinkingBudgeted thinking = "enabled"  // within a budget of tokens: older models
)

// maxTries limits the attempts to send a request in different forms. A server may refuse the
// number of tokens, the form of thinking and a signature. Then the first error is returned.
const maxTries = 5

// budgets holds the number of tokens for thinking, by reasoning effort.
var budgets = map[string]int64{"low": 4_096, "medium": 16_384, "high": 32_000}

// leastBudget is the least number of tokens for thinking that the API takes. If the whole answer
// may not be longer than that, it is written without thinking.
const leastBudget = 1024

// thinkingOf returns the form of thinking to try first for a model, by its name.
func thinkingOf(model string) thinking {
	for _, old := range []string{"claude-3-7", "-4-0", "-4-1", "-4-5", "-4-2025"} {
		if strings.Contains(model, old) {
			return thinkingBudgeted
		}
	}
	return thinkingAdaptive
}

// serverLimits holds the limits that servers have shown by refusals, for later requests.
type serverLimits struct {
	maxTokens       map[string]int64    // limit of the tokens of an answer, by model
	thinking        map[string]thinking // form of thinking that the server takes, by model
	refusedThinking map[[32]byte]bool   // hashes of refused provider data; the map is replaced, never changed
	changes         int                 // number of changes of refusedThinking
}

// plan holds the parameters of a request that a server may refuse.
type plan struct {
	maxTokens    int64
	oneOff       bool // maxTokens was computed for this conversation, and is not remembered
	thinking     thinking
	triedBoth    bool // both forms of thinking were tried
	hasThinking  bool // the conversation has thinking of the requested model
	omitThinking bool // earlier thinking is not sent
}

// ask sends a request. After a refusal it changes the plan and tries again, at most maxTries
// times. It remembers a plan that works. If none does, it returns the first error, which is the
// helpful one.
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

// adapt changes the plan after a refusal, to a plan that the server may accept. It returns false
// if there is no such plan.
func (p *plan) adapt(failure *llm.ProviderError) bool {
	if failure.Status != http.StatusBadRequest && failure.Status != http.StatusUnprocessableEntity {
		return false
	}
	message := strings.ToLower(failure.Message)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(message, w) })
	}
	switch {
	case has("must start with a thinking block") && p.thinking == thinkingBudgeted:
		// The turn was begun by another model, or its thinking is not sent any more.
		p.thinking, p.triedBoth = thinkingDefault, true
		return true
	case has("thinking block", "`thinking` block", "redacted_thinking", "signature") && p.hasThinking && !p.omitThinking:
		// A signature is bound to the model, and with newer models to everything before it.
		// After a conversation is cut, its thinking does not fit any more.
		p.omitThinking = true
		return true
	case has("max_tokens"):
		n, oneOff := parseAllowedTokens(message, p.maxTokens)
		if n == 0 {
			return false
		}
		p.maxTokens, p.oneOff = n, p.oneOff || oneOff
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

// parseAllowedTokens returns the number of tokens that a server accepts, from the message (in
// lower case) with which it refused the number refused; 0: it names no number. oneOff is set if
// the number depends on the conversation. Servers write "max_tokens: 64000 > 32000, which is the
// maximum allowed number of output tokens", "the valid range is [1, 8192]", or "exceed context
// limit: 188240 + 64000 > 200000".
func parseAllowedTokens(message string, refused int64) (n int64, oneOff bool) {
	const least = 256 // a smaller number means something else, or is too small for an answer
	var all []int64
	for _, text := range numbers().FindAllString(message, 20) {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			all = append(all, n)
		}
	}
	if i := slices.Index(all, refused); strings.Contains(message, "context") && i > 0 && i+1 < len(all) {
		n, oneOff = all[i+1]-all[i-1], true
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
	return n, oneOff
}

// learn remembers for later requests what is special in a plan that the server has accepted.
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
		refused := map[[32]byte]bool{}
		maps.Copy(refused, m.limits.refusedThinking)
		for _, e := range entries {
			for _, part := range e.Parts {
				if part.ProviderData.IsFrom(providerName, model) {
					refused[sha256.Sum256(part.ProviderData.Data)] = true
				}
			}
		}
		m.limits.refusedThinking = refused
		m.limits.changes++
	}
}

// send sends a request with the parameters of the plan.
func (m *Model) send(x *provider.Exchange, s settings, p plan, entries []*llm.Entry) error {
	m.mu.Lock()
	v := blockEncoder{model: s.model, images: &m.images, refusedThinking: m.limits.refusedThinking, omitThinking: p.omitThinking}
	version := strings.Join([]string{s.model, m.images.Version(), strconv.Itoa(m.limits.changes)}, "\x00")
	m.mu.Unlock()
	list := conversation(entries, func(e *llm.Entry) []byte {
		if p.omitThinking {
			return v.blocks(e) // not cached, for this request only
		}
		return e.Encode(version, v.blocks)
	})
	s.maxTokens, s.thinking = p.maxTokens, p.thinking
	template, err := m.templateFor(s)
	if err != nil {
		return err
	}
	return x.Post("/v1/messages", list.SpliceInto(template, placeholderMessage()))
}

// templateFor returns the body of a request with the settings. Mostly it is that of the preceding
// request.
func (m *Model) templateFor(s settings) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.template == nil || !m.template.settings.same(s) {
		template, err := newRequestTemplate(s)
		if err != nil {
			return nil, err
		}
		m.template = template
	}
	return m.template.body, nil
}

// settings returns the settings of a request, without those that the plan holds.
func (m *Model) settings(req llm.Request, entries []*llm.Entry) settings {
	s := settings{model: m.ModelOf(req), effort: m.ReasoningEffort, system: systemTexts(entries), tools: req.Tools}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(s.tools) > 0 {
		if !provider.SameTools(m.tools, s.tools) {
			m.tools = provider.CloneTools(s.tools)
		}
		s.tools = m.tools
		return s
	}
	// The API refuses a conversation with calls if the request defines no tools. The tools
	// of the last request with tools keep the cache valid.
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
