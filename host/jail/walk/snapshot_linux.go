package walk

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/policy/paths"
)

func (s *Snapshot) bytes(e *entry) []byte { return s.names[e.name:][:e.size] }

func (s *Snapshot) name(e *entry) string { return string(s.bytes(e)) }

// each calls do for every entry, with its root, its directory and its index in entries.
func (s *Snapshot) each(do func(r root, d dir, i int32)) {
	for at, r := range s.roots {
		end := len(s.dirs)
		if at+1 < len(s.roots) {
			end = int(s.roots[at+1].top)
		}
		for _, d := range s.dirs[r.top:end] {
			for i := d.first; i < d.end; i++ {
				do(r, d, i)
			}
		}
	}
}

// sorted returns the indexes of a directory's entries, sorted by name.
func (s *Snapshot) sorted(d int32) []int32 {
	out := make([]int32, 0, s.dirs[d].end-s.dirs[d].first)
	for i := s.dirs[d].first; i < s.dirs[d].end; i++ {
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b int32) int { return bytes.Compare(s.bytes(&s.entries[a]), s.bytes(&s.entries[b])) })
	return out
}

// rel returns the path of directory d relative to its root, and the root.
func (s *Snapshot) rel(d int32) (string, *root) {
	var names []string
	for s.dirs[d].parent >= 0 {
		names = append(names, s.name(&s.entries[s.dirs[d].entry]))
		d = s.dirs[d].parent
	}
	slices.Reverse(names)
	return strings.Join(names, "/"), &s.roots[s.dirs[d].entry]
}

func (s *Snapshot) dirPath(d int32) string {
	rel, r := s.rel(d)
	if rel == "" {
		return r.path
	}
	return strings.TrimSuffix(r.path, "/") + "/" + rel
}

// path returns the absolute path of an entry.
func (s *Snapshot) path(i int32) string {
	e := &s.entries[i]
	return strings.TrimSuffix(s.dirPath(e.dir), "/") + "/" + s.name(e)
}

// files returns the number of files below an entry, at any depth.
func (s *Snapshot) files(e *entry) int {
	if e.child == 0 {
		return 0
	}
	n := 0
	for i := s.dirs[e.child].first; i < s.dirs[e.child].end; i++ {
		if f := &s.entries[i]; f.kind == unix.DT_DIR {
			n += s.files(f)
		} else {
			n++
		}
	}
	return n
}

// rules returns the rules of the list of special paths for the names in directory d.
func (s *Snapshot) rules(d int32) paths.Dir {
	rules := paths.DirOf(s.dirPath(d))
	if s.dirs[d].repository {
		rules = rules.Repository()
	}
	return rules
}

// add counts the entry i, a special path with this care, and adds it to the list if it fits.
func (s *Snapshot) add(to *Specials, care paths.Care, i int32) {
	to.Count++
	if len(to.Found) >= maxListed {
		return
	}
	e := &s.entries[i]
	special := &paths.RepositorySpecial
	if found, _ := s.rules(e.dir).Find(s.name(e)); care == paths.Secret && found.Hidden != nil {
		special = found.Hidden
	} else if care == paths.Closed && found.ReadOnly != nil {
		special = found.ReadOnly
	}
	to.Found = append(to.Found, Found{s.path(i), e.kind == unix.DT_DIR, *special})
}
