package llm

import "math"

// Price is the price of a million tokens of a model, in US dollars. Nil: not known.
type Price struct {
	Input       float64 // tokens that the model reads, except those of CachedInput and CacheWrite
	Output      float64 // tokens that the model writes, reasoning included
	CachedInput float64 // tokens of the input from the provider's cache; 0: as Input
	CacheWrite  float64 // tokens of the input that are written into the provider's cache; 0: as Input
}

// Cost returns the cost of tokens in US dollars. Nil: the price or the usage is not known.
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
	// A server may report more tokens from the cache than were sent.
	cached := min(max(u.CachedTokens, 0), u.InputTokens)
	written := min(max(u.CacheWriteTokens, 0), u.InputTokens-cached)
	return dollars((float64(u.InputTokens-cached-written)*p.Input + float64(cached)*or(p.CachedInput) +
		float64(written)*or(p.CacheWrite) + float64(u.OutputTokens)*p.Output) / 1e6)
}

// AddCosts returns the sum of two costs. An unknown cost (nil) counts as 0; the sum of two
// unknown costs is nil.
func AddCosts(a, b *float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return dollars(*a + *b)
}

// dollars rounds an amount to nine digits after the point, which removes errors of binary
// fractions: 0.0096, not 0.009600000000000001.
func dollars(d float64) *float64 {
	d = math.Round(d*1e9) / 1e9
	return &d
}
