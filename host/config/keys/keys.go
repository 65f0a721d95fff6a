// Package keys reads a file of TOML by one table of its keys, and writes the
// sample of that file from the same table. agent.toml and policy.toml are such
// files: a key is added to either by one entry in its table.
//
// A [Key] has a name, a [Kind] of values and a text that says what it is for. A
// [Setting] is a key that a file sets. What comes of a setting is for the owner
// of the table, who keeps it beside the key.
//
//	table := keys.Table{{Name: "model.name", Kind: keys.Choice("a", "b"), Doc: "..."}, ...}
//	file, err := table.Parse(path, data, nil)
//	for _, s := range file.Settings { ... s.Key, s.Value, file.Line(s) ... }
package keys

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/nearest"
)

// Key is one key of a file.
type Key struct {
	// Name is its words with dots between them: "model.name". A word in upper
	// case stands for any: "tools.NAME.allow". A word with [] stands for each
	// table of a list: "rules[].effect" is the key effect in every [[rules]].
	Name    string
	Kind    Kind
	Note    string // said after its kind, in the sample
	Example string // as TOML, in the sample: the default where there is one
	Doc     string // one sentence or more, in the sample
}

// Table is every key of a file, in the order of its sample. Keys of one TOML
// table stand together.
type Table []Key

// TableOf is the table of the keys that a program keeps something else beside.
func TableOf[K any](all []K, of func(K) Key) Table {
	t := make(Table, len(all))
	for i, k := range all {
		t[i] = of(k)
	}
	return t
}

// Names are the names of the keys, as people write them: a list of tables
// without its [].
func (t Table) Names() []string {
	names := make([]string, len(t))
	for i, k := range t {
		names[i] = strings.ReplaceAll(k.Name, "[]", "")
	}
	return names
}

// words are the words of each key.
func (t Table) words() [][]string {
	out := make([][]string, len(t))
	for i, k := range t {
		out[i] = strings.Split(k.Name, ".")
	}
	return out
}

// What find finds at a path beside the index of a key.
const (
	foundNothing = -1 - iota
	foundTable   // keys stand below it
	foundList    // of tables
)

// find returns the index of the key at a path, or what else is there.
func find(keys [][]string, path []string) int {
	found := foundNothing
	for i, words := range keys {
		if len(words) < len(path) || !slices.EqualFunc(words[:len(path)], path, matches) {
			continue
		}
		switch {
		case len(words) == len(path):
			return i
		case strings.HasSuffix(words[len(path)-1], "[]"):
			found = foundList
		default:
			found = foundTable
		}
	}
	return found
}

func matches(word, name string) bool {
	return anyName(word) || strings.TrimSuffix(word, "[]") == name
}

// anyName reports whether a word of a key's name stands for any.
func anyName(word string) bool { return word == strings.ToUpper(word) }

// hint helps with a key that is not in the table.
func (t Table) hint(path []string) string {
	names := t.Names()
	last, misplaced := strings.ToLower(path[len(path)-1]), ""
	var tables []string
	for i, name := range names {
		words := strings.Split(name, ".")
		tables = append(tables, words[0])
		for n, word := range words { // with the names of this file
			if anyName(word) && n < len(path) {
				words[n] = path[n]
			}
		}
		names[i] = strings.Join(words, ".")
		if misplaced == "" && words[len(words)-1] == last {
			misplaced = fmt.Sprintf(" (did you mean %q?)", names[i]) // the right word under the wrong table, or under none
		}
	}
	if misplaced != "" && (len(path) == 1 || find(t.words(), path[:1]) <= foundTable) {
		return misplaced
	}
	if h := nearest.Hint(strings.Join(path, "."), names); h != "" {
		return h
	}
	if misplaced == "" && len(path) == 1 {
		return nearest.Hint(last, tables)
	}
	return misplaced
}
