package llm

import "testing"

func TestCost(t *testing.T) {
	plain := &Price{Input: 2, Output: 10}
	whole := &Price{Input: 2, Output: 10, CachedInput: 0.2, CacheWrite: 2.5}
	for name, c := range map[string]struct {
		price *Price
		usage Usage
		want  float64 // below 0: it is not known
	}{
		"input and output":                             {plain, Usage{InputTokens: 1_000_000, OutputTokens: 100_000}, 3},
		"reasoning is a part of the output":            {plain, Usage{OutputTokens: 100_000, ReasoningTokens: 90_000}, 1},
		"what is cached costs less":                    {whole, Usage{InputTokens: 1_000_000, CachedTokens: 500_000}, 1.1},
		"what is put into the cache costs more":        {whole, Usage{InputTokens: 1_000_000, CacheWriteTokens: 1_000_000}, 2.5},
		"all of it":                                    {whole, Usage{InputTokens: 1_000_000, OutputTokens: 100_000, CachedTokens: 500_000, CacheWriteTokens: 100_000}, 0.4*2 + 0.5*0.2 + 0.1*2.5 + 1},
		"without prices of the cache it costs Input":   {plain, Usage{InputTokens: 1_000_000, CachedTokens: 500_000, CacheWriteTokens: 100_000}, 2},
		"more is cached than was sent":                 {whole, Usage{InputTokens: 1_000_000, CachedTokens: 5_000_000, CacheWriteTokens: 7}, 0.2},
		"a model that costs nothing":                   {&Price{}, Usage{InputTokens: 10}, 0},
		"an amount that is no binary fraction":         {&Price{Input: 0.1, Output: 0.2}, Usage{InputTokens: 3, OutputTokens: 3}, 0.000000900},
		"without a price":                              {nil, Usage{InputTokens: 10}, -1},
		"a provider that does not say how many tokens": {plain, Usage{}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.price.Cost(c.usage)
			if got == nil != (c.want < 0) || got != nil && *got != *dollars(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestAddCosts(t *testing.T) {
	one, two := 0.1, 0.2
	for name, c := range map[string]struct{ a, b, want *float64 }{
		"both are known": {&one, &two, dollars(0.3)},
		"only the first": {&one, nil, &one},
		"only the other": {nil, &two, &two},
		"neither":        {nil, nil, nil},
	} {
		if got := AddCosts(c.a, c.b); got == nil != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
