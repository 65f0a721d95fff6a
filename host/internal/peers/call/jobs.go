//go:build bench

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// job is a task that is done in all ways.
type job struct {
	name string
	args func(dir string) map[string]any // as seen from a guest that knows dir by this name
}

var jobs = []job{
	{"small", func(dir string) map[string]any {
		return map[string]any{"path": filepath.Join(dir, itemsFile), "tag": "blue"}
	}},
	{"large", func(string) map[string]any { return map[string]any{"script": script, "n": 40} }},
}

func (j job) arguments(dir string) string {
	data, err := json.Marshal(j.args(dir))
	if err != nil {
		panic(err) // strings and numbers only
	}
	return string(data)
}

// script leaves no state behind that it could find again.
const script = `(function () {
	var counts = {};
	for (var i = 0; i < n; i++) {
		var word = "w" + i * 7919 % 13;
		counts[word] = (counts[word] || 0) + 1;
	}
	return JSON.stringify(counts);
})()`

const itemsFile = "items.json"

// writeItems makes the file that the small job reads: 40 items in 2.1 kB.
func writeItems(dir string) error {
	type item struct {
		ID    int      `json:"id"`
		Name  string   `json:"name"`
		Price float64  `json:"price"`
		Tags  []string `json:"tags"`
	}
	var items []item
	for i := range 40 {
		tags := []string{[]string{"red", "blue", "green"}[i%3]}
		items = append(items, item{i, fmt.Sprintf("n%d", i*37%100), float64(i*i%97) / 4, tags})
	}
	data, err := json.Marshal(items)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, itemsFile), data, 0o644)
}
