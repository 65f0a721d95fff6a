package match

import (
	"encoding/json"
	"testing"

	"github.com/stockade-dev/stockade/host/policy/paths"
)

// FuzzIndexOfPaths: the index finds every path that a pattern matches.
func FuzzIndexOfPaths(f *testing.F) {
	for _, s := range []string{"/a/**", "/a/*/b", "/", "/**/x", "/a/b*c"} {
		f.Add(s, "/a/b/c")
	}
	f.Fuzz(func(t *testing.T, pattern, arg string) {
		c, err := NewCondition(Path, "path", pattern, false)
		if err != nil {
			return
		}
		name, sure := paths.Clean(arg, "/work")
		if name == "" || !sure {
			return
		}
		x := NewIndex()
		x.Add(0, "t", []Condition{c})
		found := false
		args, err := json.Marshal(map[string]string{"path": name})
		if err != nil {
			t.Fatal(err)
		}
		x.Find("t", NewArguments(args, "/", NewWork()), func(int) {}, func(int) { found = true })
		if c.path.Match(name) && !found {
			t.Errorf("%q matches %q, and the index does not find it", pattern, name)
		}
	})
}
