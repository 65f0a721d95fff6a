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

// The providers that are not asked by their own names only.
const (
	ProviderAuto    = "auto"    // openai if there is a key or an address, offline otherwise
	ProviderOpenAI  = "openai"  // and whatever speaks its chat completions
	ProviderOllama  = "ollama"  // models on this machine
	ProviderOffline = "offline" // a small planner in this process, for demonstrations
)

// ProviderKind is what is known of a provider before anything is set.
type ProviderKind struct {
	Name string
	// Address is its own. Empty: it is in this process.
	Address string
	// AddressVariable is the variable in which its programs look for another one. Empty:
	// there is none.
	AddressVariable string
	// KeyVariables are those with its key, of which the first that is set counts. None: it
	// wants no key.
	KeyVariables []string
	Header       string // that carries the key
	client       func(provider.Options) client
}

// client is what a package of a provider makes.
type client interface {
	llm.Model
	Models(context.Context) ([]string, error)
	URLHint() string
}

// providerKinds is every provider, in the order in which people are told of them.
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

// AddressIn is the address that the environment names; empty where it names none.
func (k ProviderKind) AddressIn(env func(string) string) string {
	if k.AddressVariable == "" {
		return ""
	}
	address := env(k.AddressVariable)
	if k.Name == ProviderOllama && address != "" {
		return ollama.HostURL(address) // it is a host, as a server takes it
	}
	return address
}

func chatCompletions(o provider.Options) client { return openai.New(o) }

// ProviderKinds is every provider, in the order in which people are told of them.
func ProviderKinds() []ProviderKind { return slices.Clone(providerKinds) }

// ProviderKindOf is the provider of a name; of auto it is openai.
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

// Provider is where a model is.
type Provider struct {
	Name    string // [ProviderAuto], or that of a [ProviderKind]
	Profile string // how a person calls all of this; empty: it has no name
	// Client says how it is reached; Name, HTTPClient and, of the offline model, the
	// rest are filled in.
	Client provider.Options
	// Attempts is how often a request is sent at most, the first time counted; 0: 4.
	Attempts int
	// Price is that of the model. Nil: it is not known.
	Price *llm.Price
	// Rules are the user's for the network: what they deny is denied to the provider
	// too, whose own host needs no rule.
	Rules []network.Rule
	// Fallback are asked instead, one after the other, where it fails and another may
	// not. What they fall back on themselves does not count.
	Fallback []Provider
}

// Address is the address of a provider; empty: it is in this process.
func (p *Provider) Address() string {
	k, _ := ProviderKindOf(p.Name)
	if k.Address == "" {
		return ""
	}
	return cmp.Or(p.Client.BaseURL, k.Address)
}

// ModelError says why no model can be asked.
type ModelError struct {
	Fault ModelFault
	What  string
	// Permitted is what a layer permits instead; nothing is known where it is empty.
	Permitted []string
}

func (e *ModelError) Error() string { return e.What }

// ModelFault is what is wrong with a provider.
type ModelFault int

// The faults.
const (
	FaultProvider  ModelFault = iota // there is no such provider
	FaultKey                         // it needs a key
	FaultName                        // it needs the name of a model
	FaultAddress                     // its address cannot be used
	FaultDenied                      // a layer does not permit the provider
	FaultDeniedURL                   // a layer does not permit its address
)

// ResolveProvider is a provider as it would be asked: auto has become another one, and what is
// empty has its default. The error is a *[ModelError] that says why it cannot be asked.
func (d *Door) ResolveProvider(p Provider) (Provider, error) {
	err := d.resolveProvider(&p, true)
	return p, err
}

// FindOllama looks for an Ollama where the environment says one is, or else on this
// machine. It makes one request, which loads nothing, and none where the layers do not
// permit that provider.
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

// resolveProvider makes auto one of the providers, and says what keeps it from being asked
// before anything is sent: the layers first.
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
	if kind.Address == "" { // which this process serves
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
		p.Client.BaseURL = "" // without /v1, and nothing else can be meant
	}
	p.Client.BaseURL = cmp.Or(p.Client.BaseURL, kind.Address)
	return nil
}

// ProviderInfo is what [Door.Probe] has found out about a provider.
type ProviderInfo struct {
	Name   string   // of the provider; empty: it cannot be asked
	URL    string   // where it is; empty: in this process
	Models []string // that it has; nil: it does not say
	Hint   string   // where it does not: what can be wrong with the base URL
}

// Probe makes one request of a provider that costs nothing, and sends no word of a
// conversation. It takes as long as ctx lets it. The error may be a *[ModelError] or a
// *llm.ProviderError.
func (d *Door) Probe(ctx context.Context, p Provider) (ProviderInfo, error) {
	return d.probe(ctx, p, true)
}

// Models is [Door.Probe] for a provider of which no model is chosen yet.
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

// Use has the next turns ask another provider. If that cannot be asked nothing changes;
// the error may be a *[ModelError]. No turn may be running.
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

// fillModel makes the model of a provider, after asking the layers, and before
// anything is sent.
func (s *Session) fillModel(opts *agent.Options, p Provider) error {
	first, err := s.model(&p)
	if err != nil {
		return err
	}
	opts.Model, opts.Provider, s.Provider = first, p.Name, p.Name
	opts.ModelName, opts.ContextTokens, opts.Price = cmp.Or(opts.ModelName, p.Client.Model), cmp.Or(opts.ContextTokens, p.Client.ContextTokens), cmp.Or(opts.Price, p.Price)
	var others []llm.Alternative
	for _, other := range p.Fallback {
		model, err := s.model(&other)
		if err != nil {
			s.door.opts.Note("warning: %s cannot be asked where %s fails: %v", other.Profile, p.Profile, err)
			continue
		}
		others = append(others, llm.Alternative{Profile: other.Profile, Provider: other.Name, Name: other.Client.Model, Model: model, ContextTokens: other.Client.ContextTokens, Price: other.Price})
	}
	if others != nil {
		opts.Model = llm.Failover(first, others)
	}
	return nil
}

// model makes the model of one provider, and completes what is said of that.
func (s *Session) model(p *Provider) (llm.Model, error) {
	if err := s.door.resolveProvider(p, true); err != nil {
		return nil, err
	}
	s.door.AddSecret(p.Client.APIKey)
	served := *p
	if p.Name == ProviderOffline {
		// The offline model is served over the real wire format and read by the real
		// client, so that a turn with it exercises everything that a turn with a
		// provider does.
		token := rand.Text()
		server := offline.NewServer(offline.Planner{}, token)
		url, err := server.Start("127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("offline model: %w", err)
		}
		s.closers = append(s.closers, func() error { return server.Close(context.Background()) })
		served.Client.APIKey, served.Client.BaseURL, served.Client.Model = token, url, "offline"
	}
	c, err := s.door.client(served)
	if err != nil {
		return nil, err
	}
	return llm.Retry(c, cmp.Or(p.Attempts, 4)), nil
}

// client makes the client of a provider that was chosen.
func (d *Door) client(p Provider) (client, error) {
	if err := d.setHTTPClient(&p.Client, p.Rules); err != nil {
		return nil, err
	}
	kind, _ := ProviderKindOf(p.Name)
	return kind.client(p.Client), nil
}

// checkProvider asks the layers whether a provider may be asked.
func (d *Door) checkProvider(provider string) error {
	return checkPermitted(FaultDenied, fmt.Sprintf("the provider %q", provider), provider, d.ceiling.Providers)
}

// checkBaseURL asks them about its address. Its own may stand in them as "", too.
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

// checkPermitted is the error of what is not in all of the lists; nil if it is.
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

// setHTTPClient gives the client of a model the way to its own host, whatever it is, and
// to nobody else.
func (d *Door) setHTTPClient(opts *provider.Options, rules []network.Rule) error {
	out, err := d.egress()
	if err != nil {
		return err
	}
	own, err := egress.ProviderNetwork(opts.BaseURL, rules)
	if err != nil {
		return &ModelError{Fault: FaultAddress, What: err.Error()}
	}
	if opts.Name != ProviderOffline { // which this process serves
		own = d.ceiling.RestrictNetwork(own)
	}
	opts.HTTPClient = out.Client(own)
	return nil
}
