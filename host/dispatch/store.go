package dispatch

import (
	"context"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/toolstore"
)

// StoreContents lists what the tools have in their stores in this session.
func (d *Dispatcher) StoreContents() []toolstore.Listing { return d.stores.List() }

// openStore adds the store of the call's module to the grant, if the grant allows a store. It
// waits until no other call holds the store. The call holds it until its result is recorded.
func (p *pending) openStore(ctx context.Context, grant policy.Grant, entry *tool.Entry) (policy.Grant, error) {
	if !grant.HasStore() {
		return grant, nil
	}
	p.closeStore() // of an earlier attempt of this call
	view, err := p.d.stores.Open(ctx, entry.Module)
	if err != nil {
		return grant, p.cancelledError()
	}
	p.view = view
	return grant.WithStore(view), nil
}

// closeStore lets other calls have the store. It does nothing if the call has no store.
func (p *pending) closeStore() {
	if p.view != nil {
		p.view.Close()
		p.view = nil
	}
}

// storeChanges returns the record of the call's changes in its store; nil: there are none, or
// the call has failed.
func (p *pending) storeChanges(result tool.Result) []session.Draft {
	if p.view == nil || result.Err != nil {
		return nil
	}
	body, changed := p.view.Changes(p.call.Tool)
	if !changed {
		return nil
	}
	return []session.Draft{p.draft(session.TypeToolStoreChanges, body)}
}
