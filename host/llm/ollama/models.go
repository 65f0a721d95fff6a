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

// maxModels limits the number of models that are listed; others are left out.
const maxModels = 10_000

// Models returns the names of the server's models: first those that can call tools, as far as
// the server knows. Models that only make embeddings are left out. Nil: the server has no such
// list and is not an Ollama; empty but not nil: it has no model. Nothing of a conversation is
// sent, no model is loaded, and the request is not repeated. Ctx limits the time.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	body, err := m.Get(ctx, "/api/tags", maxAnswerBytes)
	if err != nil {
		return nil, withModelHint("", err)
	}
	var answer struct {
		Models []struct {
			Name         json.RawMessage `json:"name"`
			Capabilities json.RawMessage `json:"capabilities"` // since 0.30
		} `json:"models"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Models == nil {
		return nil, nil
	}
	tools, others := []string{}, []string(nil)
	for _, model := range answer.Models[:min(len(answer.Models), maxModels)] {
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

// Find looks for an Ollama at host, a value of OLLAMA_HOST; empty: at Ollama's default address. It
// sends one request, which loads no model. Ctx limits the time. ok is false if no server answers,
// or a server that is not an Ollama.
func Find(ctx context.Context, client *http.Client, host string) (baseURL string, models []string, ok bool) {
	baseURL = HostURL(host)
	models, err := New(provider.Options{BaseURL: baseURL, HTTPClient: client}).Models(ctx)
	return baseURL, models, err == nil && models != nil
}

// HostURL returns the base URL for a value of OLLAMA_HOST: a host, a port, both, a URL, or an
// address to listen on. Empty: the base URL of [Defaults].
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
		name = "127.0.0.1" // a server that listens on all addresses listens on this one
	}
	u := url.URL{Scheme: scheme, Host: net.JoinHostPort(name, port), Path: strings.TrimRight(path, "/")}
	return u.String()
}

// ask sends a request about models, and returns the answer, which is one JSON value.
func (m *Model) ask(ctx context.Context, path string, body json.RawMessage) (json.RawMessage, error) {
	x, done := m.Begin(ctx)
	defer done()
	x.JSONLines = true
	if err := x.Post(path, provider.Pieces{body}); err != nil {
		return nil, x.Explain(err)
	}
	answer, err := x.Next()
	if err != nil {
		return nil, x.EndError(err, true)
	}
	x.Drain()
	return answer, nil
}
