package door

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"

	"github.com/stockade-dev/stockade/host/agent"
	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/offline"
	"github.com/stockade-dev/stockade/host/llm/openai"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
)

// The providers.
const (
	ProviderAuto    = "auto"    // openai if there is a key or an address, offline otherwise
	ProviderOpenAI  = "openai"  // and whatever speaks its API
	ProviderOffline = "offline" // a small planner in this process, for demonstrations
)

// Provider is where a model is.
type Provider struct {
	Name string // one of the constants
	// Client says how it is reached; Name, HTTPClient and, of the offline model, the
	// rest are filled in.
	Client provider.Options
	// Attempts is how often a request is sent at most, the first time counted; 0: 4.
	Attempts int
	// Rules are the user's for the network: what they deny is denied to the provider
	// too, whose own host needs no rule.
	Rules []network.Rule
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

// choose makes auto one of the providers, and says what keeps it from being asked
// before anything is sent: the layers first.
func (d *Door) choose(p *Provider) error {
	if p.Name == ProviderAuto {
		p.Name = ProviderOffline
		if p.Client.APIKey != "" || p.Client.BaseURL != "" {
			p.Name = ProviderOpenAI
		}
	}
	err := d.permits(p.Name)
	if err == nil && p.Name != ProviderOffline { // which this process serves
		err = d.permitsURL(p.Client.BaseURL)
	}
	if err != nil {
		return err
	}
	p.Client.Name = p.Name
	switch p.Name {
	case ProviderOpenAI:
		if p.Client.APIKey == "" && p.Client.BaseURL == "" {
			return &ModelError{Fault: FaultKey, What: "no API key: " + p.Client.KeySource + " is not set"}
		}
		if p.Client.Model == "" {
			return &ModelError{Fault: FaultName, What: "no model is named"}
		}
	case ProviderOffline:
	default:
		return &ModelError{Fault: FaultProvider, What: fmt.Sprintf("unknown provider %q", p.Name)}
	}
	return nil
}

// Found is what [Door.Try] has found out about a provider.
type Found struct {
	Name   string   // of the provider; empty: it cannot be asked
	URL    string   // where it is; empty: in this process
	Models []string // that it has; nil: it does not say
}

// Try makes one request of a provider that costs nothing, and sends no word of a
// conversation. It takes as long as ctx lets it. The error may be a *[ModelError] or a
// *llm.ProviderError.
func (d *Door) Try(ctx context.Context, p Provider) (Found, error) {
	if err := d.choose(&p); err != nil {
		return Found{}, err
	}
	found := Found{Name: p.Name}
	if p.Name == ProviderOffline {
		return found, nil
	}
	d.Know(p.Client.APIKey)
	found.URL = cmp.Or(p.Client.BaseURL, openai.Defaults.BaseURL)
	if err := d.reach(&p.Client, p.Rules); err != nil {
		return found, err
	}
	var err error
	found.Models, err = openai.New(p.Client).Models(ctx)
	return found, err
}

// connect makes the model of a provider, after asking the layers, and before
// anything is sent.
func (s *Session) connect(opts *agent.Options, p Provider) error {
	if err := s.door.choose(&p); err != nil {
		return err
	}
	if p.Name == ProviderOffline {
		// The offline model is served over the real wire format and read by the real
		// client, so that a turn with it exercises everything that a turn with a
		// provider does.
		token := rand.Text()
		server := offline.NewServer(offline.Planner{}, token)
		url, err := server.Start("127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("offline model: %w", err)
		}
		s.closers = append(s.closers, func() error { return server.Close(context.Background()) })
		p.Client.APIKey, p.Client.BaseURL, p.Client.Model = token, url, "offline"
	}
	if err := s.door.reach(&p.Client, p.Rules); err != nil {
		return err
	}
	opts.Model, opts.Provider, s.Provider = llm.Retry(openai.New(p.Client), cmp.Or(p.Attempts, 4)), p.Name, p.Name
	return nil
}

// permits asks the layers whether a provider may be asked.
func (d *Door) permits(provider string) error {
	return denied(FaultDenied, fmt.Sprintf("the provider %q", provider), provider, d.ceiling.Providers)
}

// permitsURL asks them about its address; empty is its own.
func (d *Door) permitsURL(base string) error {
	what := fmt.Sprintf("the address %q of the provider", base)
	if base == "" {
		what = "the provider's own address"
	}
	return denied(FaultDeniedURL, what, base, d.ceiling.BaseURLs)
}

// denied is the error of what is not in all of the lists; nil if it is.
func denied(fault ModelFault, what, value string, lists []policy.List) error {
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

// reach gives the client of a model the way to its own host, whatever it is, and
// to nobody else.
func (d *Door) reach(opts *provider.Options, rules []network.Rule) error {
	base := opts.BaseURL
	if base == "" {
		base = openai.Defaults.BaseURL
	}
	out, err := d.egress()
	if err != nil {
		return err
	}
	own, err := egress.ProviderNetwork(base, rules)
	if err != nil {
		return &ModelError{Fault: FaultAddress, What: err.Error()}
	}
	if opts.Name != ProviderOffline { // which this process serves
		own = d.ceiling.Narrows(own)
	}
	opts.HTTPClient = out.Client(own)
	return nil
}
