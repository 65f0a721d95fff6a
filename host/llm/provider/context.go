package provider

import (
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
		if n := page.tokens(body, model); n > 0 {
			return n
		}
	}
	return 0
}

// tokens returns the size of a model's context from a page; 0: the page does not tell.
func (p ContextPage) tokens(body []byte, model string) int {
	list := []json.RawMessage{body}
	if p.List != "" && json.Unmarshal(lookup(body, p.List), &list) != nil {
		return 0
	}
	for _, m := range list[:min(len(list), maxModels)] {
		if p.List != "" && strings.TrimPrefix(ScalarText(lookup(m, p.Name)), "models/") != strings.TrimPrefix(model, "models/") {
			continue
		}
		for _, field := range p.Fields {
			if n := ParseTokens(lookup(m, field)); n >= minContextTokens {
				return n
			}
		}
	}
	return 0
}

// lookup returns the value at a path in an object, names with points between; nil: there is none.
func lookup(object json.RawMessage, path string) json.RawMessage {
	for name := range strings.SplitSeq(path, ".") {
		var fields map[string]json.RawMessage
		_ = json.Unmarshal(object, &fields) // what is no object has no fields
		object = fields[name]
	}
	return object
}
