package paths

import (
	"strings"
	"testing"
)

// P17: stars, case, slashes and dots.
func TestPatterns(t *testing.T) {
	for pattern, c := range map[string]struct{ yes, no string }{
		"/work":         {"/work", "/ /work/a /WORK /workx /wor"},
		"/work/*":       {"/work/a /work/.b /work/[x]", "/work /work/a/b /work/ /x"},
		"/work/**":      {"/work /work/a /work/a/b/c", "/ /workx /Work/a /x/work/a"},
		"/work/**/b":    {"/work/b /work/a/b /work/a/c/b", "/work /work/a /work/b/c /work/xb"},
		"/work/*.go":    {"/work/a.go /work/.go /work/a.b.go", "/work/a.goo /work/x/a.go /work/go"},
		"/work/a*b*c":   {"/work/abc /work/axxbyyc /work/abbcc", "/work/ab /work/acb /work/a/b/c"},
		"/**":           {"/ /a /a/b", ""},
		"/*":            {"/a", "/ /a/b"},
		"/":             {"/", "/a"},
		"/**/x/**":      {"/x /a/x /x/b /a/b/x/c/d", "/ /a /xx"},
		"/work/é":       {"/work/é", "/work/e"},
		"/home/*/src/*": {"/home/a/src/b", "/home/src/b /home/a/b/src/c"},
	} {
		p, err := ParsePattern(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		for _, name := range strings.Fields(c.yes) {
			if !p.Match(strings.TrimSuffix(name, "/")) {
				t.Errorf("%s does not match %s", pattern, name)
			}
		}
		for _, name := range strings.Fields(c.no) {
			if name != "/work/" && p.Match(name) {
				t.Errorf("%s matches %s", pattern, name)
			}
		}
	}
	for _, pattern := range []string{"", "work", "./work", "~/work", "/work/", "/work//a", "/work/../etc", "/work/./a", "/..", "/work/a**", "/work/**a", "/a\x00b", "\xff", "//", "C:",
		"/work/[id]", "/work/sr[ac]/**", "/work/{a,b}", "/work/a?", `/work/\*`, strings.Repeat("/a", 5000)} {
		if p, err := ParsePattern(pattern); err == nil {
			t.Errorf("%.40q is the pattern %v", pattern, p)
		}
	}
}

// FuzzPattern: a pattern matches its own text without the stars, and never a path outside
// its literal beginning.
func FuzzPattern(f *testing.F) {
	for _, s := range []string{"/a/**", "/a/*/b", "/", "/**/x", "/a/b*c"} {
		f.Add(s, "/a/b/c")
	}
	f.Fuzz(func(t *testing.T, pattern, arg string) {
		p, err := ParsePattern(pattern)
		if err != nil {
			return
		}
		if plain := strings.NewReplacer("/**", "", "*", "x").Replace(pattern); plain != "" && !p.Match(plain) {
			t.Errorf("%q does not match %q", pattern, plain)
		}
		name, sure := Clean(arg, "/work")
		if name == "" || !sure {
			return
		}
		if p.Match(name) && p.Literal() != "" && name != p.Literal() && !strings.HasPrefix(name, p.Literal()+"/") {
			t.Errorf("%q matches %q", pattern, name)
		}
	})
}
