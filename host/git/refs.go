package git

import (
	"bytes"
	"encoding/hex"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/git/format"
	"github.com/stockade-dev/stockade/host/tool"
)

const (
	// maxRefs limits the references of one side; references in files beyond it are left out.
	// With more new ids in changed files, Dir.Incomplete is set.
	maxRefs  = 10_000
	maxPaths = 16       // nested directories of references; deeper ones are skipped
	maxRef   = 64 << 10 // bytes of a reference; a longer one is unreadable
	maxLog   = 16 << 20 // bytes of packed-refs, or of a reflog or other file with ids; else not read
)

// Unreadable stands for the content of a reference that cannot be read or is empty.
const Unreadable = "?"

// ref returns the content of a reference in normal form (see normalRef) or [Unreadable];
// empty: there is none.
func (d *dir) ref(s side, name string) string {
	if format.IsPerWorktreeRef(name) {
		return d.refIn(s, d.path, name)
	}
	return d.refIn(s, d.common, name)
}

// refIn returns the content of the reference in the git directory in, like ref.
func (d *dir) refIn(s side, in, name string) string {
	v, err := d.files.version(s, d.top, path.Join(in, name))
	if err == nil && (v == nil || v.Mode.IsDir()) {
		return d.packed(s)[name]
	}
	data, err := v.Content(maxRef)
	d.found.Incomplete = d.found.Incomplete || err != nil
	if text := normalRef(string(data)); err == nil && text != "" {
		return text
	}
	return Unreadable
}

// normalRef returns the normal form of a reference's content: only an id in hexadecimal digits,
// or "ref: " and a name. Any other content loses only the blanks at its end.
func normalRef(text string) string {
	text = strings.TrimRight(text, blanks)
	if target, ok := strings.CutPrefix(text, "ref:"); ok {
		return "ref: " + strings.TrimLeft(target, blanks)
	}
	if i := strings.IndexAny(text, blanks); i >= 0 {
		if _, ok := parseID(text[:i]); ok {
			return text[:i]
		}
	}
	return text
}

const blanks = " \t\n\v\f\r"

// packed returns the ids (hexadecimal) in packed-refs on a side, by the name of the reference.
func (d *dir) packed(s side) map[string]string {
	if d.packedIDs[s] == nil {
		d.packedIDs[s] = map[string]string{}
		text, err := d.files.text(s, d.top, d.common+"/packed-refs", maxLog)
		head, _, _ := strings.Cut(text, "\n")
		sorted := strings.HasPrefix(head, "#") && slices.Contains(strings.Fields(head), "sorted")
		bad, last := err != nil, ""
		for line := range strings.Lines(text) {
			if line[0] == '#' || line[0] == '^' {
				continue
			}
			id, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			_, ok := parseID(id)
			bad = bad || !ok || !isValidRef(name) || d.packedIDs[s][name] != "" || sorted && name < last
			d.packedIDs[s][name], last = id, name
		}
		d.found.Incomplete = d.found.Incomplete || bad // git may read another id
	}
	return d.packedIDs[s]
}

// isValidRef reports whether git accepts the name of a reference below refs/.
func isValidRef(name string) bool { return strings.HasPrefix(name, "refs/") && format.IsRef(name) }

// changedRefs compares HEAD and the references in changed files. It lists those that are new,
// gone or changed, and those that cannot be read after the change set.
func (d *dir) changedRefs() (refs []Ref) {
	all := map[string]bool{"HEAD": true}
	for name, c := range d.files.changed {
		rel, ok := strings.CutPrefix(name, d.path+"/")
		if ok && strings.HasPrefix(rel, "refs/") && (c[before].IsFile() || c[after].IsFile()) {
			all[rel] = true
		}
	}
	if d.isMain() && d.files.changed[d.common+"/packed-refs"] != nil {
		for s := range d.packedIDs {
			for name := range d.packed(side(s)) {
				all[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := Ref{Name: name, Before: d.ref(before, name), After: d.ref(after, name)}
		r.beforeID, _ = parseID(r.Before)
		if r.afterID, _ = parseID(r.After); r.Before != r.After || r.After == Unreadable {
			refs = append(refs, r)
		}
	}
	return refs
}

// refs returns the ids of all references on a side, of HEAD in all worktrees, and of all
// stashes. It leaves out references in files beyond maxRefs.
func (d *dir) refs(s side) map[string]bool {
	names := map[string]bool{"HEAD": true}
	for name := range d.packed(s) {
		names[name] = true
	}
	is := func(name string, ok func(*tool.Version) bool) bool {
		v, err := d.files.version(s, d.top, d.common+"/"+name)
		return err == nil && v != nil && ok(v)
	}
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		for _, name := range d.files.list(s, d.top, d.common+"/"+dir) {
			name = dir + "/" + name
			if isValidRef(name) && len(names) < maxRefs && is(name, (*tool.Version).IsFile) {
				names[name] = true
			} else if depth < maxPaths && is(name, func(v *tool.Version) bool { return v.Mode.IsDir() }) {
				walk(name, depth+1)
			}
		}
	}
	walk("refs", 0)
	for _, name := range d.files.list(s, d.top, d.common+"/worktrees") {
		name = "worktrees/" + name
		if is(name+"/gitdir", (*tool.Version).IsFile) && is(name+"/commondir", (*tool.Version).IsFile) {
			names[name+"/HEAD"] = true
		}
	}
	text, _ := d.files.text(s, d.top, d.common+"/logs/refs/stash", maxLog)
	ids := idsIn(text)
	for name := range names {
		if id, ok := parseID(d.refIn(s, d.common, name)); ok {
			ids[id] = true
		}
	}
	return ids
}

// idsIn returns the ids that are whole words of a text, except for ids of zeros.
func idsIn(text string) map[string]bool {
	ids := map[string]bool{}
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_'
	}) {
		if id, ok := parseID(word); ok && strings.Trim(id, "\x00") != "" {
			ids[id] = true
		}
	}
	return ids
}

// changedIDs returns the ids that changed files of the git directory name now and did not name
// before, and the ids of objects that they named before. Such files are references, reflogs,
// the state of a rebase, and others. more is set if there may be other ids, or now has more
// than maxRefs.
func (d *dir) changedIDs() (now, were map[string]bool, more bool) {
	now, were = map[string]bool{}, map[string]bool{}
	named := map[string]bool{} // ids that count even if the object is missing
	for name, c := range d.files.changed {
		rel, ok := strings.CutPrefix(name, d.path+"/")
		first, _, _ := strings.Cut(rel, "/")
		if !ok || slices.Contains([]string{"objects", "modules", "hooks", "info", "index", "config", "worktrees", "AUTO_MERGE"}, first) {
			continue
		}
		for s, v := range c {
			data, err := v.Content(maxLog)
			more = more || err != nil && v != nil && !v.Mode.IsDir()
			if side(s) == before {
				maps.Copy(were, idsIn(string(data)))
				continue
			}
			maps.Copy(now, idsIn(string(data)))
			maps.Copy(named, idsIn(withoutMessages(first, path.Base(rel), string(data))))
		}
	}
	// A new object counts as new, even if a file named its id before.
	maps.DeleteFunc(were, func(id string, _ bool) bool { return !d.store.has(before, id) })
	maps.DeleteFunc(now, func(id string, _ bool) bool { return were[id] || !named[id] && !d.store.has(after, id) })
	return now, were, more || len(now) > maxRefs
}

// withoutMessages removes texts that a person has written, because they may name ids that do
// not exist. in is the first part of the file's path in the git directory, name its last. Of
// a reflog only the two ids of each line remain.
func withoutMessages(in, name, text string) string {
	switch {
	case slices.Contains([]string{"COMMIT_EDITMSG", "MERGE_MSG", "SQUASH_MSG", "message"}, name):
		return ""
	case in != "logs":
		return text
	}
	var ids []string
	for line := range strings.Lines(text) {
		ids = append(ids, strings.SplitN(line, " ", 3)[:min(strings.Count(line, " "), 2)]...)
	}
	return strings.Join(ids, " ")
}

// removedMessages returns the messages of the entries that are in the reflog was but not in
// is. ok is false if a reflog cannot be read.
func removedMessages(was, is *tool.Version) (lines []string, ok bool) {
	if was == nil {
		return nil, true
	}
	a, err := was.Content(maxLog)
	if err != nil {
		return nil, false
	}
	b, err := is.Content(maxLog)
	if err != nil && is != nil {
		return nil, false
	}
	if bytes.HasPrefix(b, a) {
		return nil, true
	}
	left := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		left[withoutFirstID(line)] = true
	}
	for line := range strings.Lines(string(a)) {
		if !left[withoutFirstID(line)] {
			_, message, _ := strings.Cut(strings.TrimSpace(line), "\t")
			lines = append(lines, message)
		}
	}
	return lines, true
}

// withoutFirstID returns a line of a reflog without its first id, which changes when the
// preceding line is removed.
func withoutFirstID(line string) string {
	_, rest, _ := strings.Cut(line, " ")
	return rest
}

// Hex returns an id (bytes) in hexadecimal digits.
func Hex(id string) string { return hex.EncodeToString([]byte(id)) }
