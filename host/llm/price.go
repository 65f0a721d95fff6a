package llm

import "math"

// Price is what a million tokens of a model cost, in US dollars. A nil one is not known.
type Price struct {
	Input  float64 // what the model reads, but for the two below
	Output float64 // what it writes, its reasoning included
	// Of the input: what comes from the provider's cache, and what is put into it. 0: they
	// cost what Input says.
	CachedInput, CacheWrite float64
}

// Cost is what tokens cost, in US dollars; nil where the price is not known, or the
// provider did not say how many tokens there were.
func (p *Price) Cost(u Usage) *float64 {
	if p == nil || u.Total() <= 0 {
		return nil
	}
	or := func(price float64) float64 {
		if price > 0 {
			return price
		}
		return p.Input
	}
	// A server may say that more came from the cache than was sent.
	cached := min(max(u.CachedTokens, 0), u.InputTokens)
	written := min(max(u.CacheWriteTokens, 0), u.InputTokens-cached)
	return dollars((float64(u.InputTokens-cached-written)*p.Input + float64(cached)*or(p.CachedInput) +
		float64(written)*or(p.CacheWrite) + float64(u.OutputTokens)*p.Output) / 1e6)
}

// AddCosts is the sum of two costs, of which one that is not known counts for nothing;
// nil where neither is.
func AddCosts(a, b *float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return dollars(*a + *b)
}

// dollars is an amount without what binary fractions add to it: 0.0096, and not
// 0.009600000000000001.
func dollars(d float64) *float64 {
	d = math.Round(d*1e9) / 1e9
	return &d
}
