//go:build unix

package wasi

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzNames does every operation with two names in a workspace full of traps: files
// outside or masked are neither read nor changed, and nothing panics.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{
		"ws/f.txt", "ws/d/g.txt", "ws/new", "ws", "/", "", ".", "..", "../x", "ws/../out/secret", "a/../../x",
		"ws/abs", "ws/rel", "ws/up/secret", "ws/up/dir/..", "ws/loop/x", "ws/hidden/key", "ws/hl/key", "ws/later",
		"ws/d/l/hidden/key", "ws/ro/x", "ws/./d//../ro/../../out", `ws\..\out`, "ws/\x00", "ws/\xff", "ws/f.txt/",
		"ws/hard", "ws/d/l/../out/secret", "ws/new/", "ws/.", "ws/..", "ws/ro/..", "out/secret", "out",
	} {
		f.Add(seed, "ws/other", uint32(ReadWrite|Create))
		f.Add("ws/f.txt", seed, uint32(Truncate))
	}
	f.Fuzz(func(t *testing.T, a, b string, flag uint32) {
		w := newWorld(t)
		w.File("ws/hidden/key", canary)
		w.File("ws/ro/x", "read only")
		w.File("out/shared", "shared")
		w.HardLink("ws/hard", "out/shared")
		w.Link("ws/abs", "out/secret")
		w.Link("ws/rel", "../out/secret")
		w.Link("ws/up", "../out")
		w.Link("ws/loop", "loop")
		w.Link("ws/hl", "hidden")
		w.Link("ws/d/l", "..")
		// These files must stay; the rest of the workspace may change.
		kept := func() map[string]string {
			state := w.State()
			maps.DeleteFunc(state, func(p, _ string) bool {
				for _, keep := range []string{"out", "ws/hidden", "ws/ro"} {
					if p == keep || strings.HasPrefix(p, keep+"/") {
						return false
					}
				}
				return true
			})
			return state
		}
		g := w.openMasked([]string{"ws/hidden", "ws/later"}, w.rw("ws"), w.ro("ws/ro"))
		before := kept()
		for _, p := range []string{a, b, a + "/" + b} {
			name := g.name(p)
			g.try(p, Flag(flag))
			g.try(p, ReadOnly)
			g.try(p, ReadWrite|Create)
			g.try(p+"/x", WriteOnly|Create|Exclusive)
			g.Stat(name)
			g.Lstat(name)
			if target, _ := g.Readlink(name); strings.Contains(target, "out") {
				t.Errorf("readlink %q told %q", p, target)
			}
			g.SetTimes(name, true, 1e9, 1e9)
			g.SetTimes(name, false, 1e9, 1e9)
			g.Mkdir(name)
			g.Symlink("../out", name)
			g.Link(name, g.name("ws/linked"))
		}
		g.Link(g.name(a), g.name(b))
		g.Rename(g.name(a), g.name(b))
		g.try("ws/secret", ReadOnly)
		g.Rename(g.name(b), g.name(a))
		g.Unlink(g.name(a))
		g.Rmdir(g.name(b))
		if diff := cmp.Diff(before, kept()); diff != "" {
			t.Errorf("something out of reach was changed (-before +after):\n%s", diff)
		}
		if _, err := os.Lstat(w.Path("ws/later")); err == nil {
			t.Error("a masked directory was created")
		}
	})
}
