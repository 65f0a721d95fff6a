package lock

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/config/keys"
)

// Diff says in words what differs, a line for each thing, by the names of the
// modules. A nil file names none.
func Diff(was, now *File) (lines []string) {
	old, fresh := Modules(was), Modules(now)
	for len(old)+len(fresh) > 0 {
		switch {
		case len(fresh) == 0 || len(old) > 0 && old[0].Name < fresh[0].Name:
			lines = append(lines, "gone: "+old[0].Name)
			old = old[1:]
		case len(old) == 0 || fresh[0].Name < old[0].Name:
			lines = append(lines, "new: "+fresh[0].Name)
			fresh = fresh[1:]
		default:
			for _, what := range differ(old[0], fresh[0]) {
				lines = append(lines, old[0].Name+", "+what)
			}
			old, fresh = old[1:], fresh[1:]
		}
	}
	return lines
}

// Modules returns the modules of a lockfile; f may be nil.
func Modules(f *File) []Module {
	if f == nil {
		return nil
	}
	return f.Modules
}

// decisiveKeys are the fields that a person decides by, which are told before the others.
var decisiveKeys = []string{"version", "wants", "needs", "signer", "keys"}

func differ(was, now Module) (what []string) {
	order := slices.SortedStableFunc(slices.Values(fields), func(a, b field) int {
		return cmp.Compare(rank(a), rank(b))
	})
	for _, f := range order {
		a, b := f.get(was), f.get(now)
		if reflect.DeepEqual(a, b) {
			continue
		}
		short, other := shorten(show(a)), shorten(show(b))
		if short == other { // somebody has searched for one that begins like the other
			short, other = show(a), show(b)
		}
		what = append(what, fmt.Sprintf("%s: was %s, now %s", f.label, short, other))
	}
	return what
}

func rank(f field) int {
	if i := slices.Index(decisiveKeys, f.keyName()); i >= 0 {
		return i
	}
	return len(decisiveKeys)
}

// show writes a value for a person.
func show(v any) string {
	switch v := v.(type) {
	case string:
		if v != "" {
			return v
		}
	case []string:
		if len(v) > 0 {
			return strings.Join(v, ", ")
		}
	default:
		return keys.Format(v)
	}
	return "none"
}

var longHash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(sha256:[0-9a-f]{12})[0-9a-f]{52}`) })

// shorten leaves of a hash what a person compares.
func shorten(s string) string { return longHash().ReplaceAllString(s, "$1...") }
