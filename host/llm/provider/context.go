package provider

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
)

const (
	contextTimeout   = 5 * time.Second // time for all requests about the size of a context
	minContextTokens = 1024            // a smaller size is not believed, in tokens
)

// ModelPage is a page of a server about its models, which may tell the size of their contexts.
type ModelPage struct {
	Path string // path below the base URL
	// Root is set if the path is below the root of the server. Such a page of a server of one's own
	// is only asked for without encryption.
	Root bool
	List string // field with the list of models; empty: the page is about the model that is loaded
	Name string // field with the name of a model of the list
	// Fields are the fields with the size, the best first. A point leads into an object.
	Fields []string
}

// ContextSize implements [llm.ContextSizer]. It reads the size from the first of ModelPages that
// tells it. Names of models in a list may begin with "models/". It ends after 5 s.
func (c *Client) ContextSize(ctx context.Context, req llm.Request) int {
	ctx, cancel := context.WithTimeout(ctx, contextTimeout)
	defer cancel()
	for _, page := range c.ModelPages {
		from := *c
		if base, err := url.Parse(c.BaseURL); page.Root && err == nil {
			if base.Scheme != "http" {
				continue
			}
			from.BaseURL = base.Scheme + "://" + base.Host
		}
		body, err := from.Get(ctx, page.Path, maxModelsBytes)
		if err != nil {
			continue
		}
		if n := page.tokens(body, c.ModelOf(req)); n > 0 {
			return n
		}
	}
	return 0
}

// tokens returns the size of a model's context from a page; 0: the page does not tell.
func (p ModelPage) tokens(body []byte, model string) int {
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
