package dispatch

import (
	"context"
	"strings"

	"github.com/stockade-dev/stockade/host/tool"
)

// check finds the tool, and refuses a call that it could not take: there is
// nothing to be decided about such a call.
func (p *pending) check(ctx context.Context) (*tool.Entry, error) {
	entry, err := p.find()
	if err == nil {
		err = p.checkArgs(ctx, entry)
	}
	if err == nil {
		err = p.checkSeen(entry)
	}
	return entry, err
}

func (p *pending) find() (*tool.Entry, error) {
	catalog := p.d.catalog.Load()
	entry, ok := catalog.Find(p.call.Tool)
	if ok {
		p.call.Tool = entry.Name // an alias stands for its tool from here on
		return entry, nil
	}
	offer := p.d.offer()
	if p.call.Tool == tool.ListTools && offer.list != nil {
		return offer.list, nil
	}
	r := tool.Failed(tool.CodeUnknownTool, tool.NotFound, "there is no tool %.80q", p.call.Tool)
	if near := catalog.Nearest(p.call.Tool); near != "" {
		r.Err.Hint = tool.Advise("did you mean %q?", near)
	} else if offer.list != nil {
		r.Err.Hint = tool.Advise("%s lists the tools of a group", tool.ListTools)
	} else {
		r.Err.Hint = tool.Advise("the tools are: %s", strings.Join(catalog.Names(), ", "))
	}
	return nil, &refusal{r}
}

const maxHintSchema = 8 << 10 // bytes

func (p *pending) checkArgs(ctx context.Context, entry *tool.Entry) error {
	args, err := entry.Schema.Check(ctx, p.call.Args)
	if err != nil && ctx.Err() != nil {
		return p.cancelled()
	}
	if err != nil {
		r := tool.Failed(tool.CodeInvalidArgs, tool.ValidationFailed, "%s: %v", entry.Name, err)
		if len(entry.Parameters) <= maxHintSchema { // a longer one would only push out what the model knows
			r.Err.Hint = tool.Advise("the schema of the arguments is: %s", entry.Parameters)
		}
		return &refusal{r}
	}
	p.call.Args = args
	return nil
}

func (p *pending) cancelled() error {
	when := "it ran"
	if p.rehearsing {
		when = "its changes were made"
	}
	return &refusal{tool.Failed(tool.CodeCancelled, tool.InternalError, "%s was cancelled before %s", p.call.Tool, when)}
}
