package ollama

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/llm/provider"
)

// maxModels is how many names of models are kept.
const maxModels = 10_000

// Models asks the server which models it has: first those that can call tools, as far as
// it says; without those that are for embeddings only. Nothing of a conversation is sent, and no
// model is loaded. Nil: it has no such list, and is no Ollama; empty, but not nil: it has no model.
// It is not tried again; ctx bounds the time that it takes.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	answer, err := m.Get(ctx, "/api/tags", m.Bearer(), maxAnswerBytes)
	if err != nil {
		return nil, withModelHint("", err)
	}
	var said struct {
		Models []struct {
			Name         json.RawMessage `json:"name"`
			Capabilities json.RawMessage `json:"capabilities"` // since 0.30
		} `json:"models"`
	}
	if json.Unmarshal(answer, &said) != nil || said.Models == nil {
		return nil, nil
	}
	tools, others := []string{}, []string(nil)
	for _, model := range said.Models[:min(len(said.Models), maxModels)] {
		name, can := provider.ScalarText(model.Name), []string(nil)
		if json.Unmarshal(model.Capabilities, &can) != nil {
			can = nil
		}
		switch {
		case name == "" || can != nil && !slices.Contains(can, "completion"):
		case slices.Contains(can, "tools"):
			tools = append(tools, name)
		default:
			others = append(others, name)
		}
	}
	return append(tools, others...), nil
}

// Find asks whether an Ollama runs where OLLAMA_HOST says, whose value host is, or at
// its usual address where that is empty. It makes one request, which loads nothing; ctx bounds
// the time that it takes. Ok is false if nobody is there, or somebody who is no Ollama.
func Find(ctx context.Context, client *http.Client, host string) (baseURL string, models []string, ok bool) {
	baseURL = HostURL(host)
	models, err := New(provider.Options{BaseURL: baseURL, HTTPClient: client}).Models(ctx)
	return baseURL, models, err == nil && models != nil
}

// HostURL is the base URL for a value of OLLAMA_HOST, which may be an address to listen on: a
// host, a port, both, or a URL. [Defaults] has that of an empty one.
func HostURL(host string) string {
	host = strings.TrimSpace(host)
	scheme, rest, found := strings.Cut(host, "://")
	port := map[string]string{"http": "80", "https": "443"}[scheme]
	if !found {
		scheme, rest, port = "http", host, "11434"
	}
	rest, path, _ := strings.Cut(rest, "/")
	name := rest
	if h, p, err := net.SplitHostPort(rest); err == nil {
		name = h
		if p != "" {
			port = p
		}
	}
	name = strings.Trim(name, "[]")
	if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() {
		name = "127.0.0.1" // who listens everywhere is found here
	}
	u := url.URL{Scheme: scheme, Host: net.JoinHostPort(name, port), Path: strings.TrimRight(path, "/")}
	return u.String()
}

// ask makes a request about models, and returns the answer, which is one JSON value.
func (m *Model) ask(ctx context.Context, path string, body json.RawMessage) (json.RawMessage, error) {
	x, done := m.Begin(ctx)
	defer done()
	x.JSONLines = true
	if err := x.Post(path, m.Bearer(), provider.Pieces{body}); err != nil {
		return nil, x.Explain(err)
	}
	answer, err := x.Next()
	if err != nil {
		return nil, x.EndError(err, true)
	}
	x.Drain()
	return answer, nil
}
