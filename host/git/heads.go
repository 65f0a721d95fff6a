package git

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/git/format"
	"github.com/stockade-dev/stockade/host/git/ignore"
	"github.com/stockade-dev/stockade/host/tool"
)

// Heads tells which files of a change set git holds or ignores. It goes by two states: the commit
// of HEAD as it was before the changes, and the index as it is after them.
type Heads struct {
	files     *files
	worktrees map[string]*worktree // by a directory inside; nil: there is none
}

// OpenHeads returns the Heads of the repositories of a change set. It reads nothing yet.
func OpenHeads(changes []tool.Change) *Heads {
	return &Heads{newFiles(changes, newBudget()), map[string]*worktree{}}
}

// Close closes the files that are open.
func (h *Heads) Close() {
	for _, w := range h.worktrees {
		if w != nil {
			w.store.close()
		}
	}
	h.files.close()
}

// Holds reports whether HEAD or the index has the content of a file before the change. A file in a
// linked worktree or a submodule does not count, nor does one that cannot be read.
func (h *Heads) Holds(c tool.Change) bool {
	name := filepath.ToSlash(c.OldPath())
	w := h.worktreeOf(path.Dir(name))
	if w == nil || c.Before == nil {
		return false
	}
	rel := strings.TrimPrefix(name, w.worktreePath+"/")
	return slices.ContainsFunc([]entry{w.entries[rel], w.entryIn(w.tree, rel)}, func(e entry) bool {
		if e.id == "" {
			return false
		}
		same, _, err := w.equal(c.Before, e)
		return err == nil && same && w.store.has(after, e.id)
	})
}

// maxIgnoreBytes limits the bytes of a .gitignore file; a larger one ignores nothing.
const maxIgnoreBytes = 1 << 20

// Ignored returns the topmost path that git ignores where a change is, a directory or the file;
// empty: none. The patterns are those of the .gitignore files in HEAD. A tracked file is not
// ignored, and neither is here an executable, a link, or an ignore file itself.
func (h *Heads) Ignored(c tool.Change) string {
	name := filepath.ToSlash(c.Path)
	if c.From != "" || c.InRepository || strings.Contains(name+"/", "/.git/") || strings.EqualFold(path.Base(name), ".gitignore") || !mayBeIgnored(c) {
		return ""
	}
	w := h.worktreeOf(path.Dir(name))
	if w == nil || w.tree == "" || w.blind {
		return ""
	}
	rel := strings.TrimPrefix(name, w.worktreePath+"/")
	_, tracked := w.entries[rel]
	isDir := c.Kind == tool.DirectoryCreated || c.Kind == tool.DirectoryRemoved || c.After != nil && c.After.Mode.IsDir()
	top := w.topmost(rel, isDir)
	if tracked || top == "" || w.entryIn(w.tree, rel).id != "" {
		return ""
	}
	return filepath.FromSlash(w.worktreePath + "/" + top)
}

// mayBeIgnored reports whether both versions are directories or regular files of their own, and
// the new one is no executable.
func mayBeIgnored(c tool.Change) bool {
	for _, v := range []*tool.Version{c.Before, c.After} {
		if v != nil && (v.Mode.Type()&^fs.ModeDir != 0 || v.HardLink != "" || v.LinkCount > 1) {
			return false
		}
	}
	const special = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	return c.After == nil || c.After.Mode&special == 0 && (c.After.Mode.IsDir() || c.After.Mode&0o111 == 0 && !c.After.IsProgram())
}

// worktree is the directory of a repository with the entries that its index and HEAD have.
type worktree struct {
	*dir
	tree    string                      // result of headTree
	entries map[string]entry            // entries of the index after the change set; zero: in conflict, or empty
	blind   bool                        // not all entries of the index are known
	ignores map[string][]ignore.Pattern // patterns of .gitignore files of HEAD, by directory
	tops    map[string]string           // results of topmost for directories
}

// worktreeOf returns the worktree that holds a directory; nil: there is none, or its .git is no
// directory.
func (h *Heads) worktreeOf(name string) *worktree {
	if w, ok := h.worktrees[name]; ok || name == "/" || name == "." {
		return w
	}
	h.worktrees[name] = nil
	v, err := h.files.version(before, "/", name+"/.git")
	switch {
	case err != nil || v != nil && !v.Mode.IsDir():
		return nil
	case v == nil:
		h.worktrees[name] = h.worktreeOf(path.Dir(name))
		return h.worktrees[name]
	}
	w := &worktree{dir: h.files.openDir(name+"/.git", nil), entries: map[string]entry{}, ignores: map[string][]ignore.Pattern{}, tops: map[string]string{}}
	w.tree = w.headTree()
	if v, err := h.files.version(after, w.top, w.path+"/index"); err == nil {
		x, err := readIndex(v, w.store.hashSize, h.files.left)
		w.blind = err != nil || x.partial
		for _, e := range x.entries {
			w.entries[e.name] = entry{}
			if e.flags&(format.StageMask|format.IntentToAdd) == 0 {
				w.entries[e.name] = e.entry
			}
		}
	}
	h.worktrees[name] = w
	return w
}

// headTree returns the id of the tree of HEAD before the change set; empty: there is none.
func (d *dir) headTree() string {
	c, err := d.store.commit(d.resolve(before, d.ref(before, "HEAD")))
	if err != nil {
		return ""
	}
	return c.tree
}

// entryIn returns the entry for a path below a tree; zero: there is none.
func (d *dir) entryIn(tree, rel string) (e entry) {
	e = entry{format.ModeTree, tree}
	for part := range strings.SplitSeq(rel, "/") {
		if e.mode&format.ModeType != format.ModeTree || e.id == "" {
			return entry{}
		}
		entries, err := d.store.tree(e.id)
		if err != nil {
			return entry{}
		}
		e = entries[part]
	}
	return e
}

// topmost returns the topmost part of a path that is ignored; empty: none is.
func (w *worktree) topmost(rel string, isDir bool) string {
	if parent := path.Dir(rel); parent != "." {
		top, known := w.tops[parent]
		if !known {
			top = w.topmost(parent, true)
			w.tops[parent] = top
		}
		if top != "" {
			return top
		}
	}
	names, ignored := strings.Split(rel, "/"), false
	for from := range names { // the last match of the nearest directory decides
		for _, p := range w.patterns(path.Join(names[:from]...)) {
			if p.Match(names[from:], isDir) {
				ignored = !p.Negated()
			}
		}
	}
	if ignored {
		return rel
	}
	return ""
}

// patterns returns the patterns of the .gitignore file of HEAD in a directory.
func (w *worktree) patterns(dir string) []ignore.Pattern {
	if known, ok := w.ignores[dir]; ok {
		return known
	}
	w.ignores[dir] = nil
	if e := w.entryIn(w.tree, path.Join(dir, ".gitignore")); e.id != "" && e.mode&format.ModeType == format.ModeFile {
		if o, err := w.store.read(e.id, maxIgnoreBytes); err == nil && o.kind == format.Blob {
			w.ignores[dir] = ignore.Parse(o.data)
		}
	}
	return w.ignores[dir]
}
