package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// check finds the tool of the call. It refuses a call that needs no decision: of an unknown
// tool, with wrong arguments, to change a file that the model has not seen, or of a tool whose
// directories are gone.
func (p *pending) check(ctx context.Context) (*tool.Entry, error) {
	entry, err := p.find()
	if err == nil {
		err = p.checkArgs(ctx, entry)
	}
	if err == nil {
		err = p.checkSeen(entry)
	}
	if err == nil {
		err = p.checkAllowedDirs(entry)
	}
	return entry, err
}

// checkAllowedDirs refuses a call of an added tool if a directory that the tool was given is
// gone or no directory any more, or is reached through a link: nobody gave the tool that
// place.
func (p *pending) checkAllowedDirs(entry *tool.Entry) error {
	if entry.Allowed == nil || entry.Capabilities.Files == tool.FilesNone && entry.Capabilities.Exec == "" {
		return nil
	}
	for _, m := range p.d.opts.Policy.MountsOf(entry) {
		real, err := filepath.EvalSymlinks(m.Host)
		if err == nil && real == m.Host {
			if st, err := os.Stat(real); err == nil && st.IsDir() {
				continue
			}
		}
		what := "is not there any more"
		if err == nil {
			what = "is a link now, or no directory"
		}
		r := tool.Failed(tool.CodeDenied, tool.PermissionDenied, "%s was given the directory %q, which %s", entry.Name, m.Host, what)
		r.Err.Hint = tool.Advise("put it back, or take it from the tool and give it another: ").And(tool.GrantHint(entry, "read"))
		return &refusal{r}
	}
	return nil
}

// find returns the tool of the call, and replaces an alias in the call by the tool's name. It
// refuses an unknown name, with a hint at a similar tool or at the list of the tools.
func (p *pending) find() (*tool.Entry, error) {
	if p.hostTool != nil {
		return p.hostTool, nil
	}
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
	if own, tools := catalog.EquivalentOf(p.call.Tool); own != "" {
		r.Err.Hint = tool.Advise("%s", own)
		if i := slices.IndexFunc(tools, func(e *tool.Entry) bool { return p.d.opts.Policy.Hides(e, p.call.Caller) }); i >= 0 {
			r.Err.Hint = p.notOffered(tools[i])
		}
	} else if near := catalog.Nearest(p.call.Tool); near != "" {
		r.Err.Hint = tool.Advise("did you mean %q?", near)
	} else if offer.list != nil {
		r.Err.Hint = tool.Advise("%s lists the tools of a group", tool.ListTools)
	} else {
		r.Err.Hint = tool.Advise("the tools are: %s", strings.Join(catalog.Names(), ", "))
	}
	return nil, &refusal{r}
}

// notOffered returns a hint about a tool that the caller cannot use: the reason, and a way for
// a person to change that, if there is one.
func (p *pending) notOffered(e *tool.Entry) tool.Hint {
	call := tool.Call{Tool: e.Name, Args: json.RawMessage("{}"), Caller: p.call.Caller, Cwd: p.call.Cwd}
	x := p.d.opts.Policy.Decide(call, e, policy.Facts{}).Explain()
	hint := tool.Advise("%s would do that and is not offered: %s", e.Name, x.Reason)
	if len(x.Hint) > 0 {
		hint = hint.And(tool.Advise("; only the person can change that: "), x.Hint)
	}
	return hint
}

// maxHintSchema limits the schema in a hint for the model, in bytes; a longer one is left out.
const maxHintSchema = 8 << 10

// checkArgs checks the arguments of the call against the tool's schema, and replaces them
// with their checked form.
func (p *pending) checkArgs(ctx context.Context, entry *tool.Entry) error {
	args, err := entry.Schema.Check(ctx, p.call.Args)
	if err != nil && ctx.Err() != nil {
		return p.cancelledError()
	}
	if err != nil {
		r := tool.Failed(tool.CodeInvalidArgs, tool.ValidationFailed, "%s: %v", entry.Name, err)
		// For a wrong value the error is enough. A longer schema would only push other things
		// out of the model's context.
		if errors.Is(err, tool.ErrWrongNames) && len(entry.Parameters) <= maxHintSchema {
			r.Err.Hint = tool.Advise("the schema of the arguments is: %s", entry.Parameters)
		}
		return &refusal{r}
	}
	p.call.Args = args
	return p.checkRead(entry)
}

func (p *pending) cancelledError() error {
	when := "it ran"
	if p.rehearsing {
		when = "its changes were made"
	}
	return &refusal{tool.Failed(tool.CodeCancelled, tool.InternalError, "%s was cancelled before %s", p.call.Tool, when)}
}
