package door

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/agent"
	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/anthropic"
	"github.com/stockade-dev/stockade/host/llm/google"
	"github.com/stockade-dev/stockade/host/llm/offline"
	"github.com/stockade-dev/stockade/host/llm/ollama"
	"github.com/stockade-dev/stockade/host/llm/openai"
	"github.com/stockade-dev/stockade/host/llm/openai/responses"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
)

// Names of providers with a special treatment.
const (
	ProviderAuto    = "auto"    // openai if a key or an address is configured, otherwise offline
	ProviderOpenAI  = "openai"  // OpenAI, and every server with its chat completions API
	ProviderOllama  = "ollama"  // models on this machine
	ProviderOffline = "offline" // a small planner in this process, for demonstrations
)

// ProviderKind describes a provider before anything is configured.
type ProviderKind struct {
	Name            string
	Address         string   // the provider's own URL; empty: the provider runs in this process
	AddressVariable string   // environment variable that may hold another URL of the provider; empty: none
	KeyVariables    []string // environment variables that may hold a key, the preferred first; nil: no key
	Header          string   // HTTP header that carries the key
	client          func(provider.Options) client
}

// client is a model with the additional methods that every provider's package has.
type client interface {
	llm.Model
	Models(context.Context) ([]string, error)
	URLHint() string
}

// providerKinds holds every provider, in the order in which people see them.
var providerKinds = []ProviderKind{
	{ProviderOpenAI, openai.Defaults.BaseURL, "OPENAI_BASE_URL", []string{"OPENAI_API_KEY"}, "Authorization", chatCompletions},
	{"openai-responses", openai.Defaults.BaseURL, "OPENAI_BASE_URL", []string{"OPENAI_API_KEY"}, "Authorization", func(o provider.Options) client { return responses.New(o) }},
	{"anthropic", anthropic.Defaults.BaseURL, "ANTHROPIC_BASE_URL", []string{"ANTHROPIC_API_KEY"}, "X-Api-Key", func(o provider.Options) client { return anthropic.New(o) }},
	{"google", google.Defaults.BaseURL, "GOOGLE_GEMINI_BASE_URL", []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "X-Goog-Api-Key", func(o provider.Options) client { return google.New(o) }},
	{ProviderOllama, ollama.Defaults.BaseURL, "OLLAMA_HOST", nil, "Authorization", func(o provider.Options) client { return ollama.New(o) }},
	{"xai", "https://api.x.ai/v1", "", []string{"XAI_API_KEY"}, "Authorization", chatCompletions},
	{"meta", "https://api.llama.com/compat/v1", "", []string{"LLAMA_API_KEY"}, "Authorization", chatCompletions},
	{Name: ProviderOffline, client: chatCompletions},
}

// AddressIn returns the URL of the provider in its AddressVariable; empty: none. env is like
// os.Getenv.
func (k ProviderKind) AddressIn(env func(string) string) string {
	if k.AddressVariable == "" {
		return ""
	}
	address := env(k.AddressVariable)
	if k.Name == ProviderOllama && address != "" {
		return ollama.HostURL(address) // the variable holds a host, not a URL
	}
	return address
}

func chatCompletions(o provider.Options) client { return openai.New(o) }

// ProviderKinds returns every provider, in the order in which people see them.
func ProviderKinds() []ProviderKind { return slices.Clone(providerKinds) }

// ProviderKindOf returns the provider with a name; false: none. [ProviderAuto] gives openai.
func ProviderKindOf(name string) (ProviderKind, bool) {
	if name == ProviderAuto {
		name = ProviderOpenAI
	}
	i := slices.IndexFunc(providerKinds, func(k ProviderKind) bool { return k.Name == name })
	if i < 0 {
		return ProviderKind{}, false
	}
	return providerKinds[i], true
}

// Provider configures a model, and how it is reached.
type Provider struct {
	Name    string // [ProviderAuto], or the name of a [ProviderKind]
	Profile string // name that a person gave to this configuration; empty: none
	// Client holds the options of the client. The door sets Name and HTTPClient. For the
	// offline model it also sets APIKey, BaseURL and Model.
	Client   provider.Options
	Attempts int        // limit for the times that a request is sent until it succeeds; 0: 4
	Price    *llm.Price // price of the model; nil: unknown
	// Rules are the user's network rules. A host that they deny is denied to the provider,
	// too. The provider's own host needs no rule, unless its name leads to a private network.
	Rules []network.Rule
	// Fallback lists providers that are asked in this order if this one fails and another may
	// succeed. Their own Fallback is ignored.
	Fallback []Provider
	// Summarizer is asked for summaries of conversations that are too long; nil: the provider
	// itself is. Its own Fallback and Summarizer are ignored.
	Summarizer *Provider
}

// Address returns the URL of the provider; empty: it is unknown, or runs in this process. For
// [ProviderAuto] it is that of openai.
func (p *Provider) Address() string {
	k, _ := ProviderKindOf(p.Name)
	if k.Address == "" {
		return ""
	}
	return cmp.Or(p.Client.BaseURL, k.Address)
}

// ModelError is the reason why a model cannot be asked.
type ModelError struct {
	Fault     ModelFault
	What      string   // text of the error
	Permitted []string // values that a layer permits instead; empty: unknown
}

func (e *ModelError) Error() string { return e.What }

// ModelFault is the kind of problem with a provider.
type ModelFault int

// The kinds of problems with a provider.
const (
	FaultProvider  ModelFault = iota // there is no such provider
	FaultKey                         // the provider needs a key
	FaultName                        // the provider needs the name of a model
	FaultAddress                     // the address of the provider cannot be used
	FaultDenied                      // a layer does not permit the provider
	FaultDeniedURL                   // a layer does not permit the address of the provider
)

// ResolveProvider returns a provider with ProviderAuto replaced by a real one and its defaults
// filled in. The error is a *[ModelError] if the provider cannot be asked. It sends nothing.
func (d *Door) ResolveProvider(p Provider) (Provider, error) {
	err := d.resolveProvider(&p, true)
	return p, err
}

// FindOllama looks for an Ollama server at the address in the environment, or else on this
// machine. It makes one request, which loads no model; none if a layer or a rule denies it. ok
// reports whether it has found one.
func (d *Door) FindOllama(ctx context.Context, env func(string) string, rules []network.Rule) (found ProviderInfo, ok bool) {
	kind, _ := ProviderKindOf(ProviderOllama)
	p := Provider{Name: ProviderOllama, Rules: rules, Client: provider.Options{BaseURL: kind.AddressIn(env)}}
	if d.resolveProvider(&p, false) != nil || d.setHTTPClient(&p.Client, p.Rules) != nil {
		return ProviderInfo{}, false
	}
	found.Name = p.Name
	found.URL, found.Models, ok = ollama.Find(ctx, p.Client.HTTPClient, env(kind.AddressVariable))
	return found, ok
}

// resolveProvider is ResolveProvider for p in place. needsModel false: p may name no model.
// The layers are checked first.
func (d *Door) resolveProvider(p *Provider, needsModel bool) error {
	if p.Name == ProviderAuto {
		p.Name = ProviderOffline
		if p.Client.APIKey != "" || p.Client.BaseURL != "" {
			p.Name = ProviderOpenAI
		}
	}
	kind, known := ProviderKindOf(p.Name)
	if err := d.checkProvider(p.Name); err != nil {
		return err
	}
	if !known {
		return &ModelError{Fault: FaultProvider, What: fmt.Sprintf("unknown provider %q", p.Name)}
	}
	p.Client.Name = p.Name
	if len(kind.KeyVariables) > 0 {
		p.Client.KeySource = cmp.Or(p.Client.KeySource, kind.KeyVariables[0])
	}
	if kind.Address == "" { // this process serves the model
		return nil
	}
	if err := d.checkBaseURL(p.Client.BaseURL, kind.Address); err != nil {
		return err
	}
	if p.Client.APIKey == "" && p.Client.BaseURL == "" && kind.KeyVariables != nil {
		return &ModelError{Fault: FaultKey, What: "no API key: " + p.Client.KeySource + " is not set"}
	}
	if p.Client.Model == "" && needsModel {
		return &ModelError{Fault: FaultName, What: "no model is named"}
	}
	if base := strings.TrimRight(p.Client.BaseURL, "/"); strings.Contains(base, "://") && strings.HasPrefix(kind.Address, base+"/") {
		p.Client.BaseURL = "" // the provider's own address without /v1
	}
	p.Client.BaseURL = cmp.Or(p.Client.BaseURL, kind.Address)
	return nil
}

// ProviderInfo holds the findings of [Door.Probe] about a provider.
type ProviderInfo struct {
	Name   string   // name of the provider; empty: it cannot be asked
	URL    string   // base URL of the provider; empty: it runs in this process
	Models []string // names of its models; nil: it lists none, or was not asked
	Hint   string   // possible mistake in the base URL, if Models is nil; empty: none
}

// Probe asks a provider for its models, with a request that costs nothing and sends no part of a
// conversation. Only ctx limits its time. The offline provider is not asked. The error may be a
// *[ModelError] or a *llm.ProviderError.
func (d *Door) Probe(ctx context.Context, p Provider) (ProviderInfo, error) {
	return d.probe(ctx, p, true)
}

// Models is [Door.Probe] for a provider without a chosen model.
func (d *Door) Models(ctx context.Context, p Provider) (ProviderInfo, error) {
	return d.probe(ctx, p, false)
}

func (d *Door) probe(ctx context.Context, p Provider, needsModel bool) (ProviderInfo, error) {
	if err := d.resolveProvider(&p, needsModel); err != nil {
		return ProviderInfo{}, err
	}
	found := ProviderInfo{Name: p.Name}
	if p.Name == ProviderOffline {
		return found, nil
	}
	d.AddSecret(p.Client.APIKey)
	found.URL = p.Client.BaseURL
	c, err := d.client(p)
	if err != nil {
		return found, err
	}
	if found.Models, err = c.Models(ctx); found.Models == nil {
		found.Hint = c.URLHint()
	}
	return found, err
}

// Use switches the next turns to another provider. If the provider cannot be asked, nothing
// changes, and the error may be a *[ModelError]. No turn may be running.
func (s *Session) Use(p Provider) error {
	if s.agent == nil {
		return errNoModel
	}
	var opts agent.Options
	if err := s.fillModel(&opts, p); err != nil {
		return err
	}
	s.agent.Use(opts)
	return nil
}

// fillModel sets the model of a provider and of its fallbacks in opts, and sends nothing. A
// fallback that cannot be asked is left out with a warning.
func (s *Session) fillModel(opts *agent.Options, p Provider) error {
	first, err := s.alternative(p)
	if err != nil {
		return err
	}
	opts.Model, opts.Provider, s.Provider = first.Model, first.Provider, first.Provider
	opts.ModelName, opts.ContextTokens, opts.Price = cmp.Or(opts.ModelName, first.Name), cmp.Or(opts.ContextTokens, first.ContextTokens), cmp.Or(opts.Price, p.Price)
	var others []llm.Alternative
	for _, other := range p.Fallback {
		a, err := s.alternative(other)
		if err != nil {
			s.door.opts.Note("warning: %s cannot be asked where %s fails: %v", other.Profile, p.Profile, err)
			continue
		}
		others = append(others, a)
	}
	opts.Summarizer = nil
	if p.Summarizer != nil {
		a, err := s.alternative(*p.Summarizer)
		if err != nil {
			return err
		}
		opts.Summarizer = &a
	}
	if others != nil {
		opts.Model = llm.Failover(first.Model, others)
	}
	return nil
}

// alternative returns the model of one provider, with what is known about it.
func (s *Session) alternative(p Provider) (a llm.Alternative, err error) {
	s.door.AddSecret(p.Client.APIKey)
	if err := s.door.resolveProvider(&p, true); err != nil {
		return a, err
	}
	a = llm.Alternative{Profile: p.Profile, Provider: p.Name, Name: p.Client.Model, ContextTokens: p.Client.ContextTokens, Price: p.Price}
	if p.Name == ProviderOffline {
		// The offline model is served over the real wire format and read by the real client,
		// so that a turn with it exercises everything that a turn with a provider does.
		token := rand.Text()
		server := offline.NewServer(offline.Planner{}, token)
		url, err := server.Start("127.0.0.1:0")
		if err != nil {
			return a, fmt.Errorf("offline model: %w", err)
		}
		s.closers = append(s.closers, func() error { return server.Close(context.Background()) })
		p.Client.APIKey, p.Client.BaseURL, p.Client.Model = token, url, "offline"
	}
	c, err := s.door.client(p)
	if err == nil {
		a.Model = llm.Retry(c, cmp.Or(p.Attempts, 4))
	}
	return a, err
}

// client returns the client of a resolved provider.
func (d *Door) client(p Provider) (client, error) {
	if err := d.setHTTPClient(&p.Client, p.Rules); err != nil {
		return nil, err
	}
	kind, _ := ProviderKindOf(p.Name)
	return kind.client(p.Client), nil
}

// checkProvider returns a *[ModelError] if a layer does not permit the provider.
func (d *Door) checkProvider(provider string) error {
	return checkPermitted(FaultDenied, fmt.Sprintf("the provider %q", provider), provider, d.ceiling.Providers)
}

// checkBaseURL returns a *[ModelError] if a layer does not permit the base URL of a provider.
// own is the provider's own URL. "" as base means the same, and a layer may list it as "".
func (d *Door) checkBaseURL(base, own string) error {
	if base != "" && base != own {
		return checkPermitted(FaultDeniedURL, fmt.Sprintf("the address %q of the provider", base), base, d.ceiling.BaseURLs)
	}
	for _, l := range d.ceiling.BaseURLs {
		if slices.Contains(l.Values, own) {
			continue
		}
		if err := checkPermitted(FaultDeniedURL, "the provider's own address, "+own+",", "", []policy.List{l}); err != nil {
			return err
		}
	}
	return nil
}

// checkPermitted returns a *[ModelError] if one of the lists does not permit the value;
// otherwise nil. what names the value in the text.
func checkPermitted(fault ModelFault, what, value string, lists []policy.List) error {
	ok, from := policy.Permits(lists, value)
	if ok {
		return nil
	}
	e := &ModelError{Fault: fault, What: fmt.Sprintf("%s is not permitted: %s", what, from)}
	for _, l := range lists {
		if len(l.Values) > 0 {
			e.Permitted = l.Values
			break
		}
	}
	return e
}

// setHTTPClient sets an HTTP client that reaches only the hosts of [egress.ProviderNetwork] that
// the layers allow.
func (d *Door) setHTTPClient(opts *provider.Options, rules []network.Rule) error {
	out, err := d.egress()
	if err != nil {
		return err
	}
	own, err := egress.ProviderNetwork(opts.BaseURL, rules)
	if err != nil {
		return &ModelError{Fault: FaultAddress, What: err.Error()}
	}
	if opts.Name != ProviderOffline { // this process serves the offline model
		own = d.ceiling.RestrictNetwork(own)
	}
	opts.HTTPClient = out.Client(own)
	return nil
}
