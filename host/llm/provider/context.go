package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	contextTimeout   = 5 * time.Second // time for all requests about the size of a context
	minContextTokens = 1024            // a smaller size is not believed, in tokens
)

// ContextPage is a page of a server that may tell the size of a model's context.
type ContextPage struct {
	Path string // path below the base URL
	Root bool   // the path is below the root of the server
	List string // field with the list of models; empty: the page is about the model that is loaded
	Name string // field with the name of a model of the list
	// Fields are the fields with the size, the best first. A point leads into an object.
	Fields []string
}

// FindContextSize returns the size of the context of a model from the first page that tells it,
// in tokens; 0: none does. Names of models in the list may begin with "models/". It sends nothing
// of a conversation, and ends after 5 s.
func (c *Client) FindContextSize(ctx context.Context, model string, header http.Header, pages ...ContextPage) int {
	ctx, cancel := context.WithTimeout(ctx, contextTimeout)
	defer cancel()
	for _, page := range pages {
		from := *c
		if base, err := url.Parse(c.BaseURL); page.Root && err == nil {
			from.BaseURL = base.Scheme + "://" + base.Host
		}
		body, err := from.Get(ctx, page.Path, header, maxModelsBytes)
		if err != nil {
			continue
		}
		if n := page.tokens(body, model); n >= minContextTokens {
			return n
		}
	}
	return 0
}

// tokens returns the size of a model's context from a page; 0: the page does not tell.
func (p ContextPage) tokens(body []byte, model string) int {
	if p.List == "" {
		return p.size(body)
	}
	var outer map[string]json.RawMessage
	var list []map[string]json.RawMessage
	if json.Unmarshal(body, &outer) != nil || json.Unmarshal(outer[p.List], &list) != nil {
		return 0
	}
	for _, m := range list[:min(len(list), maxModels)] {
		if strings.TrimPrefix(ScalarText(m[p.Name]), "models/") == strings.TrimPrefix(model, "models/") {
			element, _ := json.Marshal(m) // it was JSON
			return p.size(element)
		}
	}
	return 0
}

// size returns the first size in the fields of an object; 0: there is none.
func (p ContextPage) size(object []byte) int {
	for _, field := range p.Fields {
		value := json.RawMessage(bytes.TrimSpace(object))
		for name := range strings.SplitSeq(field, ".") {
			var fields map[string]json.RawMessage
			_ = json.Unmarshal(value, &fields) // what is no object has no fields
			value = fields[name]
		}
		if n := ParseTokens(value); n > 0 {
			return n
		}
	}
	return 0
}
