// Package keys reads a TOML file by a table of its keys, and writes the sample of that file
// from the same table. agent.toml and policy.toml are such files: to add a key to one of
// them, add one entry to its table.
//
// A [Key] has a name, a [Kind] of values and a text that explains it. A [Setting] is a key
// that a file sets. The package that makes the table decides the effect of a setting, by the
// index of its key.
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
	// Name is a list of words with dots between: "model.name". A word in upper case stands for
	// any word: "tools.NAME.allow". A word with [] stands for each table of a list of tables:
	// "rules[].effect" is the key effect in every [[rules]].
	Name    string
	Kind    Kind
	Note    string // text after the kind in the sample
	Example string // value in the sample, as TOML: the default if there is one
	Doc     string // explanation in the sample: one or more sentences
}

// Table holds every key of a file, in the order of its sample: one TOML table after the other.
type Table []Key

// TableOf returns the table of the keys that the elements of a list hold. An element and its
// key have the same index.
func TableOf[K any](all []K, of func(K) Key) Table {
	t := make(Table, len(all))
	for i, k := range all {
		t[i] = of(k)
	}
	return t
}

// Names returns the names of the keys, written without the [] of lists.
func (t Table) Names() []string {
	names := make([]string, len(t))
	for i, k := range t {
		names[i] = strings.ReplaceAll(k.Name, "[]", "")
	}
	return names
}

func (t Table) words() [][]string {
	out := make([][]string, len(t))
	for i, k := range t {
		out[i] = strings.Split(k.Name, ".")
	}
	return out
}

// Results of find other than the index of a key.
const (
	foundNothing = -1 - iota
	foundTable   // a table that holds keys
	foundList    // a list of tables
)

// find returns the index in keys of the key at a path, or a constant above. keys holds the
// words of each key's name.
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

// matches reports whether a name in a file fits a word of a key's name.
func matches(word, name string) bool {
	return anyName(word) || strings.TrimSuffix(word, "[]") == name
}

// anyName reports whether a word of a key's name stands for any word.
func anyName(word string) bool { return word == strings.ToUpper(word) }

// hint returns a hint for an unknown key, such as a similar name; empty: there is none.
func (t Table) hint(path []string) string {
	names := t.Names()
	last, misplaced := strings.ToLower(path[len(path)-1]), ""
	var tables []string
	for i, name := range names {
		words := strings.Split(name, ".")
		tables = append(tables, words[0])
		for n, word := range words { // fill in the names of this file
			if anyName(word) && n < len(path) {
				words[n] = path[n]
			}
		}
		names[i] = strings.Join(words, ".")
		if misplaced == "" && words[len(words)-1] == last {
			misplaced = fmt.Sprintf(" (did you mean %q?)", names[i]) // the right word in the wrong table, or in none
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
