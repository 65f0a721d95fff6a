package dispatch

import (
	"context"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/toolstore"
)

// StoreContents lists what tools keep in this session.
func (d *Dispatcher) StoreContents() []toolstore.Listing { return d.stores.List() }

// openStore gives the call the store of its module, if it may have one, as soon as no
// other call has it. The call keeps it until its result is recorded.
func (p *pending) openStore(ctx context.Context, grant policy.Grant, entry *tool.Entry) (policy.Grant, error) {
	if !grant.HasStore() {
		return grant, nil
	}
	p.closeStore() // which an earlier attempt of this call had
	view, err := p.d.stores.Open(ctx, entry.Module)
	if err != nil {
		return grant, p.cancelledError()
	}
	p.view = view
	return grant.WithStore(view), nil
}

func (p *pending) closeStore() {
	if p.view != nil {
		p.view.Close()
		p.view = nil
	}
}

// storeChanges is what is recorded of the store with the result: what the call has changed
// there, if it has succeeded.
func (p *pending) storeChanges(result tool.Result) []session.Draft {
	if p.view == nil || result.Err != nil {
		return nil
	}
	body, any := p.view.Changes(p.call.Tool)
	if !any {
		return nil
	}
	return []session.Draft{p.draft(session.TypeToolStoreChanges, body)}
}
