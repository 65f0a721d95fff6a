// Command small is the job of a small tool: it reads a list from a JSON file and sums up
// its items.
package main

import (
	"encoding/json"
	"os"

	"github.com/stockade-dev/stockade/host/internal/peers/workloads/call/form"
)

type arguments struct {
	Path string `json:"path" desc:"The file."`
	Tag  string `json:"tag" desc:"Which items are summed up."`
}

type item struct {
	ID    int      `json:"id"`
	Name  string   `json:"name"`
	Price float64  `json:"price"`
	Tags  []string `json:"tags"`
}

type result struct {
	Items   int      `json:"items"`
	Total   float64  `json:"total"`
	Names   []string `json:"names"`
	Dearest string   `json:"dearest"`
	Highest float64  `json:"highest_price"`
}

func init() {
	form.Offer("small", "Sums up the items of a file that have a tag.", sum)
	form.Warm(func() {
		var items []item
		_ = json.Unmarshal([]byte(`[{"id":1,"name":"sample","price":1.5,"tags":["sample"]}]`), &items)
	})
}

func main() { form.Main() }

func sum(args arguments) (result, error) {
	data, err := os.ReadFile(args.Path)
	if err != nil {
		return result{}, err
	}
	var items []item
	if err := json.Unmarshal(data, &items); err != nil {
		return result{}, err
	}
	r := result{Items: len(items)}
	for _, it := range items {
		for _, tag := range it.Tags {
			if tag == args.Tag {
				r.Total += it.Price
				r.Names = append(r.Names, it.Name)
			}
		}
		if it.Price > r.Highest {
			r.Dearest, r.Highest = it.Name, it.Price
		}
	}
	return r, nil
}
