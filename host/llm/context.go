package llm

import "context"

// ContextSizer is a [Model] that can find out the size of its context.
type ContextSizer interface {
	// ContextSize returns the size of the context that the request would have, in tokens; 0 if
	// the server does not tell, or cannot be asked. Nothing of a conversation is sent.
	ContextSize(ctx context.Context, req Request) int
}

// ContextSizeOf returns the size of the context of a model, in tokens; 0: it is not known.
func ContextSizeOf(ctx context.Context, model Model, req Request) int {
	if m, ok := model.(ContextSizer); ok {
		return m.ContextSize(ctx, req)
	}
	return 0
}

// ContextSize implements [ContextSizer].
func (r *retrier) ContextSize(ctx context.Context, req Request) int {
	return ContextSizeOf(ctx, r.model, req)
}

// ContextSize implements [ContextSizer], for the model that is asked first.
func (f *failover) ContextSize(ctx context.Context, req Request) int {
	return ContextSizeOf(ctx, f.first, req)
}
