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

// Diff returns the differences between two lock files in words, one line each, sorted by
// module. A nil file names no modules.
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
			for _, line := range differ(old[0], fresh[0]) {
				lines = append(lines, old[0].Name+", "+line)
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

// decisiveKeys are the keys by which a person decides. Diff lists their changes first.
var decisiveKeys = []string{"version", "wants", "needs", "signer", "keys"}

// differ returns the changes from one version of a module to the next in words.
func differ(was, now Module) (lines []string) {
	order := slices.SortedStableFunc(slices.Values(fields), func(a, b field) int {
		return cmp.Compare(rank(a), rank(b))
	})
	for _, f := range order {
		a, b := f.get(was), f.get(now)
		if reflect.DeepEqual(a, b) {
			continue
		}
		short, other := shorten(show(a)), shorten(show(b))
		if short == other { // somebody has searched for a hash with the same beginning
			short, other = show(a), show(b)
		}
		lines = append(lines, fmt.Sprintf("%s: was %s, now %s", f.label, short, other))
	}
	return lines
}

func rank(f field) int {
	if i := slices.Index(decisiveKeys, f.keyName()); i >= 0 {
		return i
	}
	return len(decisiveKeys)
}

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

// shorten cuts each hash in s to its first 12 digits, which a person can compare.
func shorten(s string) string { return longHash().ReplaceAllString(s, "$1...") }
