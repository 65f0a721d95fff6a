package git

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/git/format"
	"github.com/stockade-dev/stockade/host/policy/gitconfig"
	"github.com/stockade-dev/stockade/host/tool"
)

// Dir describes the effects of a change set on the git directory of a repository, or of a
// worktree or submodule inside such a directory.
type Dir struct {
	Path           string   // the git directory, absolute and with slashes
	Unseen         []string // paths of new or changed files of objects, unverified for a limit or their format
	Refs           []Ref
	Stashed        []string // messages of new stashes, from the reflog of refs/stash
	Dropped        []string // messages of removed stashes, from the same reflog
	Commits        int      // number of new commits that were compared, see MoreCommits
	Flagged        []string // files whose flag assume-valid or skip-worktree changes in the index
	Mismatches     []Mismatch
	Matches        []string // files that new commits or the index change, equal to those in the worktree
	LineEndDiffs   int      // number of Matches whose line ends differ in the worktree
	RemovedFiles   []string // files gone from a branch or the index that were not in the worktree before
	UntrackedFiles []string // files gone from a commit or the index that stay in the worktree
	Unstaged       bool     // a file is gone from the index that neither the old HEAD, a new commit nor the worktree has
	LogsRewritten  bool     // a reflog is gone, or was changed before its end
	MissingObjects int      // number of objects that existed before the change set and not after it
	MoreCommits    bool     // there may be more new commits, which were not compared
	Incomplete     bool     // something besides Unseen and MoreCommits was not examined
}

// IsComplete reports whether everything was examined.
func (d *Dir) IsComplete() bool { return !d.Incomplete && !d.MoreCommits && len(d.Unseen) == 0 }

// Ref is a reference that is new, gone or changed, or unreadable after the change set.
type Ref struct {
	Name            string
	Before, After   string   // content in normal form, [Unreadable], or empty: the reference does not exist
	NewCommits      int      // number of commits, of those in Dir.Commits, that it reaches now
	GainedCommits   int      // for a branch that was there: old commits that it reaches only now, at most 200
	Subject         string   // subject of the commit in After if this commit is new; else empty
	LostCommits     []string // subjects of commits that it reached and no reference reaches any more
	MayHaveLostMore bool     // LostCommits may be incomplete
	FastForward     bool     // it is known to still reach the commit in Before

	beforeID, afterID string // the ids (bytes) in Before and After; empty: none, or a symbolic reference
}

// Mismatch is a file of a commit or of the index that is missing or different in the worktree,
// or could not be compared with it.
type Mismatch struct {
	Commit        string        // hexadecimal id of the commit, or of the tree of a reference; empty: the index
	Name          string        // relative to the worktree
	Path          string        // absolute path in the worktree; if that is unknown: Name after a slash
	Before, After *tool.Version // the file in the worktree, nil: none or unknown; in Commit, nil: a submodule
	ID            string        // id of the file's object in hexadecimal digits
}

const (
	maxCommits    = 200  // new commits that are compared, and lost ones; see MoreCommits and MayHaveLostMore
	maxMismatches = 2000 // elements of Dir.Mismatches; beyond it, Dir.Incomplete is set
)

// Check examines all repositories of a change set. It returns an [*IntegrityError], the error of
// ctx, or an error of reading files of the host. After an error nothing of the change set may be
// committed. near lists directories that may have the worktree of a repository elsewhere.
func Check(ctx context.Context, changes []tool.Change, near ...string) ([]*Dir, error) {
	return check(ctx, changes, newBudget(), near)
}

func check(ctx context.Context, changes []tool.Change, left *budget, near []string) ([]*Dir, error) {
	f := newFiles(changes, left)
	defer f.close()
	var out []*Dir
	var dirs []*dir
	for _, name := range f.dirs() {
		dirs = append(dirs, f.openDir(name, near))
	}
	for _, d := range dirs {
		for _, other := range dirs {
			if !other.isMain() && other.common == d.path {
				d.linked = append(d.linked, other)
			}
		}
		found, err := d.check(ctx)
		d.store.close()
		if err != nil {
			return nil, err
		}
		if found != nil {
			out = append(out, found)
		}
	}
	return out, nil
}

// dirs lists the git directories in which something is changed. These are every .git, the git
// directories of worktrees and submodules inside a .git, and directories with other names, if
// an object in them is new or changed.
func (f *files) dirs() (names []string) {
	seen := map[string]bool{}
	for name, c := range f.changed {
		if i := strings.Index(name+"/", "/.git/"); i >= 0 {
			git := name[:i+len("/.git")]
			names = append(names, git)
			if !strings.HasPrefix(name, git+"/modules/") && !strings.HasPrefix(name, git+"/worktrees/") {
				continue
			}
			name = path.Dir(name)
		} else if i := strings.LastIndex(name, "/objects/"); i >= 0 && c[after] != nil {
			name = name[:i]
		} else {
			continue
		}
		for top := repositoryRoot(name); strings.HasPrefix(name, top) && !seen[name]; name = path.Dir(name) {
			if seen[name] = true; f.isGitDir(name, top) {
				names = append(names, name)
				break
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// CutDir splits a path at its first .git. root is the directory above .git, and rel the path
// below. inside is false for a path without .git.
func CutDir(path string) (root, rel string, inside bool) {
	root, rel, inside = strings.Cut(path+"/", "/.git/")
	return root, strings.TrimSuffix(rel, "/"), inside
}

// repositoryRoot returns the directory in which the .git of a path lies, or else the path.
func repositoryRoot(name string) string {
	if root, _, inside := CutDir(name); inside {
		return cmp.Or(root, "/")
	}
	return name
}

// isGitDir reports whether git would take the directory name, before or after the change set, for
// a git directory. Unchanged files outside of top are not read. The git directory of a linked
// worktree has no objects and refs, but a file commondir.
func (f *files) isGitDir(name, top string) bool {
	has := func(part string) bool {
		return slices.ContainsFunc([]side{before, after}, func(s side) bool {
			v, err := f.version(s, top, name+"/"+part)
			return err == nil && v != nil
		})
	}
	return has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

// dir is a git directory, with the results of its check.
type dir struct {
	files                      *files
	top                        string // except for the worktree, no unchanged file outside of it is read
	path, common               string
	worktreePath, worktreeRoot string // path, empty: unknown; no file of it outside of worktreeRoot is read
	store                      *store
	packedIDs                  [2]map[string]string // hexadecimal ids in packed-refs by side and reference; nil: not read
	shallow                    map[string]bool      // ids in the file shallow: commits without parents here
	found                      Dir
	linked                     []*dir          // changed linked worktrees of the repository
	ignoreMode                 bool            // core.filemode is false: git ignores executable bits
	compared                   map[string]bool // keys of entries that were compared: name, mode and id
	same                       map[string]bool // names of equal files of the worktree; true: listed in Matches
	newOnHead                  map[string]bool // ids that HEAD reaches through new commits
	quiet                      bool            // set while equal files are not to be listed in Matches
}

// isMain reports whether this is the git directory of a repository or submodule, not of a linked
// worktree.
func (d *dir) isMain() bool { return d.path == d.common }

func (f *files) openDir(name string, near []string) *dir {
	top := repositoryRoot(name)
	d := &dir{files: f, top: top, path: name, common: name, compared: map[string]bool{}, same: map[string]bool{}}
	if text, _ := f.text(after, top, name+"/commondir", maxRef); text != "" {
		if common := path.Join(name, strings.TrimSpace(text)); strings.HasPrefix(name, common+"/") {
			d.common = common
		}
	}
	config, _ := f.text(after, top, d.common+"/config", gitconfig.MaxBytes)
	keys, err := gitconfig.Parse(config)
	configured := func(name, value string) bool {
		return slices.ContainsFunc(keys, func(k gitconfig.Key) bool { return k.Name == name && strings.EqualFold(k.Value, value) })
	}
	d.store = &store{files: f, top: top, dir: d.common + "/objects", hashSize: sha1.Size}
	if d.ignoreMode = configured("core.filemode", "false"); configured("extensions.objectformat", "sha256") {
		d.store.hashSize = sha256.Size
	} else if err != nil && strings.Contains(strings.ToLower(config), "objectformat") {
		d.found.Incomplete = true // it may use another hash function
	}
	d.found.Incomplete = d.found.Incomplete || configured("extensions.refstorage", "reftable")
	text, _ := f.text(after, top, d.common+"/shallow", maxLog)
	d.shallow = idsIn(text)
	d.locate(keys, near)
	d.found.Path = name
	return d
}

// locate finds the worktree. A path from a file of the repository is used only if it lies
// below top or in a directory of near, or if files directly in it are changed. An absolute
// core.worktree is ignored.
func (d *dir) locate(keys []gitconfig.Key, near []string) {
	switch work, ok := strings.CutSuffix(d.path, "/.git"); {
	case ok:
		d.worktreePath, d.worktreeRoot = work, d.top
	case !d.isMain():
		text, _ := d.files.text(after, d.top, d.path+"/gitdir", maxRef)
		d.worktreePath = path.Dir(path.Clean(strings.TrimSpace(text)))
	default:
		for _, k := range keys {
			if k.Name == "core.worktree" && !path.IsAbs(k.Value) {
				d.worktreePath = path.Join(d.path, k.Value)
			}
		}
	}
	within := func(dir string) bool { return d.worktreePath == dir || strings.HasPrefix(d.worktreePath, dir+"/") }
	switch {
	case d.worktreeRoot != "" || d.worktreePath == "":
	case within(d.top):
		d.worktreeRoot = d.top
	case path.IsAbs(d.worktreePath) && (slices.ContainsFunc(near, func(n string) bool { return within(filepath.ToSlash(n)) }) || d.files.changedIn[d.worktreePath] != nil):
		d.worktreeRoot = d.worktreePath
	default:
		d.worktreePath = ""
	}
}

// check verifies new objects and describes the changes. Of a git directory outside of any .git
// it only verifies the objects, and returns nil unless some were not verified.
func (d *dir) check(ctx context.Context) (*Dir, error) {
	if d.isMain() {
		unseen, err := d.store.verify(ctx)
		if err != nil {
			return nil, err
		}
		d.found.Unseen, d.found.MissingObjects = unseen, d.store.missing(ctx)
	}
	if strings.Contains(d.path+"/", "/.git/") {
		d.history(ctx)
		if err := d.index(ctx); err != nil {
			return nil, err
		}
	} else if len(d.found.Unseen) == 0 {
		return nil, nil
	}
	for name, listed := range d.same {
		if listed {
			d.found.Matches = append(d.found.Matches, name)
		}
	}
	for _, list := range []*[]string{&d.found.Matches, &d.found.RemovedFiles, &d.found.UntrackedFiles} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return &d.found, ctx.Err()
}

// history finds added and lost commits. It compares the files of new commits, of branches
// and of HEAD with the worktree.
func (d *dir) history(ctx context.Context) {
	now, were, more := d.changedIDs()
	d.found.Refs = d.changedRefs()
	for _, r := range d.found.Refs {
		if r.afterID != "" && !were[r.afterID] {
			now[r.afterID] = true // references in packed-refs count, too
		}
		if r.afterID != "" && r.afterID != r.beforeID {
			d.compareTarget(ctx, r.afterID)
		}
	}
	stops := func() map[string]bool {
		all := d.refs(before)
		maps.Copy(all, were)
		maps.DeleteFunc(all, func(id string, _ bool) bool { return !d.store.has(before, id) })
		return all
	}
	added, all := d.commitsExcept(ctx, now, stops, maxCommits)
	d.found.Commits, d.found.MoreCommits = len(added), len(added) == maxCommits && !all
	d.found.Incomplete = d.found.Incomplete || more || !all && !d.found.MoreCommits
	left := map[string]bool{} // old ids of those references whose new commits do not lead to them
	for i := range d.found.Refs {
		r := &d.found.Refs[i]
		reached, seen := reach(added, r.afterID)
		r.NewCommits = len(reached)
		for _, c := range reached {
			if c.id == r.afterID {
				r.Subject = c.subject
			}
		}
		if r.FastForward = seen[r.beforeID]; r.beforeID != "" && !r.FastForward {
			left[r.beforeID] = true
		}
	}
	d.findLost(ctx, left)
	if c := d.files.changed[d.common+"/logs/refs/stash"]; d.isMain() && c != nil {
		var ok, ok2 bool
		d.found.Dropped, ok = removedMessages(c[before], c[after])
		d.found.Stashed, ok2 = removedMessages(c[after], c[before])
		d.found.Incomplete = d.found.Incomplete || !ok || !ok2
	}
	for name, c := range d.files.changed {
		if strings.HasPrefix(name, d.path+"/logs/") && c[before] != nil && !c[before].Mode.IsDir() {
			was, err := c[before].Content(maxLog)
			is, err2 := c[after].Content(maxLog)
			d.found.LogsRewritten = d.found.LogsRewritten || err != nil || err2 != nil || !bytes.HasPrefix(is, was)
		}
	}
	for _, other := range d.linked {
		_, other.newOnHead = reach(added, other.resolve(after, other.ref(after, "HEAD")))
	}
	for _, c := range added {
		var parents []string
		for _, id := range c.parents {
			if p, err := d.store.commit(id); err == nil {
				parents = append(parents, p.tree)
			} else if !d.shallow[c.id] {
				d.found.Incomplete = true
			}
		}
		d.compareTree(ctx, c.id, c.tree, parents, "", 0)
	}
	for i := range d.found.Refs {
		d.compareGained(ctx, &d.found.Refs[i])
	}
	d.compareGained(ctx, &Ref{Name: "HEAD", Before: d.ref(before, "HEAD"), After: d.ref(after, "HEAD")})
	slices.SortStableFunc(d.found.Refs, func(a, b Ref) int { return len(b.LostCommits) - len(a.LostCommits) })
}

// compareTarget compares the tree to which a reference leads, if it leads to no commit.
func (d *dir) compareTarget(ctx context.Context, id string) {
	id, o, err := d.store.peel(id)
	switch {
	case err != nil && !errors.Is(err, errNoCommit) || o.kind == format.Commit: // the walk reports missing objects
	case o.kind == format.Tree:
		d.compareTree(ctx, id, id, nil, "", 0)
	default:
		d.found.Incomplete = true
	}
}

// compareGained compares those files of a branch or of HEAD that differ from its files before,
// even if all its commits are old. It skips a new branch, and a move back along first parents
// by fewer than maxCommits.
func (d *dir) compareGained(ctx context.Context, r *Ref) {
	was, is := d.resolve(before, r.Before), d.resolve(after, r.After)
	if is == "" || is == was || r.Name != "HEAD" && (was == "" || !strings.HasPrefix(r.Name, "refs/heads/")) {
		return
	}
	c, err := d.store.commit(is)
	if err != nil {
		d.found.Incomplete = true
		return
	}
	var trees []string
	for at, n := was, 0; at != "" && n < maxCommits; n++ {
		p, err := d.store.commit(at)
		if err != nil {
			break
		}
		if p.id == c.id {
			return
		}
		if at = ""; n == 0 {
			trees = []string{p.tree}
		}
		if len(p.parents) > 0 && !r.FastForward && d.store.has(before, c.id) {
			at = p.parents[0]
		}
	}
	if r.Name != "HEAD" {
		gained, _ := d.between(ctx, was, is, maxCommits)
		r.GainedCommits = max(len(gained)-r.NewCommits, 0)
	}
	d.quiet = true
	d.compareTree(ctx, c.id, c.tree, trees, "", 0)
	d.quiet = false
}

// resolve returns the id to which the content of a reference leads on a side; empty: none.
func (d *dir) resolve(s side, text string) string {
	for range maxSymbolic {
		id, ok := parseID(text)
		name, symbolic := strings.CutPrefix(text, "ref: ")
		if ok || !symbolic {
			return id
		}
		text = d.ref(s, name)
	}
	return ""
}

// maxSymbolic limits the references in a chain of symbolic references, as in git; a longer chain
// has no id.
const maxSymbolic = 5

// findLost finds the commits that no reference reaches any more, and adds their subjects to
// Dir.Refs. left holds the old ids of references whose new commits do not lead to them.
func (d *dir) findLost(ctx context.Context, left map[string]bool) {
	lost, all := d.commitsExcept(ctx, left, func() map[string]bool { return d.refs(after) }, maxCommits)
	for i := range d.found.Refs {
		r := &d.found.Refs[i]
		if !left[r.beforeID] || r.FastForward {
			continue
		}
		reached, _ := reach(lost, r.beforeID)
		for _, c := range reached {
			r.LostCommits = append(r.LostCommits, c.subject)
		}
		r.MayHaveLostMore = !all
		if all && len(r.LostCommits) == 0 && r.afterID != "" && len(left) <= maxFollowed {
			behind, all := d.between(ctx, r.afterID, r.beforeID, 1)
			r.FastForward = all && len(behind) == 0
		}
	}
}

// maxFollowed limits the old ids of moved references; only up to it, findLost checks whether a
// reference that lost no commits still reaches its old commit.
const maxFollowed = 20

const maxDepth = format.MaxDepth

// compareTree compares entries of a tree with the worktree: those that no parent tree has in
// the same form. in is the id of the commit; parents holds the ids of the parent trees. prefix
// is the path of the tree, with a slash at its end; empty: the root. depth is the number of
// trees above. Entries that every parent has and the tree lacks are given to noteRemoved.
func (d *dir) compareTree(ctx context.Context, in, tree string, parents []string, prefix string, depth int) {
	entries, err := d.store.tree(tree)
	if err != nil || depth > maxDepth || ctx.Err() != nil {
		d.found.Incomplete = true
		return
	}
	olds := make([]map[string]entry, len(parents))
	for i, p := range parents {
		if olds[i], err = d.store.tree(p); err != nil {
			d.found.Incomplete = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e := entries[name]
		if slices.ContainsFunc(olds, func(old map[string]entry) bool { return old[name] == e }) {
			continue
		}
		if e.mode&format.ModeType != format.ModeTree {
			d.compare(in, prefix+name, e)
			continue
		}
		var below []string
		for _, old := range olds {
			if o := old[name]; o.mode&format.ModeType == format.ModeTree {
				below = append(below, o.id)
			}
		}
		d.compareTree(ctx, in, e.id, below, prefix+name+"/", depth+1)
	}
	if len(olds) == 0 {
		return
	}
	for name, e := range olds[0] {
		lacks := func(in map[string]entry) bool { return in[name] == entry{} }
		if lacks(entries) && !slices.ContainsFunc(olds, lacks) {
			d.noteRemoved(e, prefix+name, d.quiet, depth)
		}
	}
}

// noteRemoved records a file that is gone from a commit or the index, but is still in the
// worktree. With gone, it also records a file that is not in the worktree and was not in it
// before the change set. A file that was in it before is shown as a change of the set.
func (d *dir) noteRemoved(e entry, name string, gone bool, depth int) {
	v, err := d.worktreeFile(name)
	isTree := e.mode&format.ModeType == format.ModeTree
	switch c := d.files.changed[d.worktreePath+"/"+name]; {
	case err != nil || depth > maxDepth:
		d.found.Incomplete = true
	case isTree && (v == nil && gone || v != nil && v.Mode.IsDir()):
		entries, err := d.store.tree(e.id)
		d.found.Incomplete = d.found.Incomplete || err != nil
		for below, e := range entries {
			d.noteRemoved(e, name+"/"+below, gone, depth+1)
		}
	case isTree:
	case v != nil:
		d.found.UntrackedFiles = append(d.found.UntrackedFiles, name)
	case gone && (c == nil || c[before] == nil):
		d.found.RemovedFiles = append(d.found.RemovedFiles, name)
	}
}

// worktreeFile returns a file of the worktree after the change set; nil: there is none, the
// worktree is unknown, or git would not check out a file of this name.
func (d *dir) worktreeFile(name string) (*tool.Version, error) {
	if d.worktreePath == "" || !format.IsPath(name) {
		return nil, nil
	}
	return d.files.version(after, d.worktreeRoot, d.worktreePath+"/"+name)
}

func compareKey(name string, e entry) string { return fmt.Sprintf("%s\x00%o %s", name, e.mode, e.id) }

// compare compares an entry with the worktree. in is the id of the commit; empty: the index.
func (d *dir) compare(in, name string, e entry) {
	key := compareKey(name, e)
	if d.compared[key] {
		return
	}
	d.compared[key] = true
	now, err := d.worktreeFile(name)
	equal, ends := false, false
	if err == nil {
		equal, ends, err = d.equal(now, e)
	}
	for _, other := range d.linked {
		if equal || in == "" || !other.newOnHead[in] {
			continue
		}
		there, _ := other.worktreeFile(name)
		if there, _, _ := d.equal(there, e); there {
			other.same[name] = !d.quiet || other.same[name]
			return
		}
	}
	if equal && d.quiet {
		delete(d.compared, key) // so that the index can list it
		return
	}
	if equal {
		if ends && !d.same[name] {
			d.found.LineEndDiffs++
		}
		d.same[name] = true
		return
	}
	d.found.Incomplete = d.found.Incomplete || err != nil || d.worktreePath == ""
	if len(d.found.Mismatches) == maxMismatches {
		d.found.Incomplete = true
		return
	}
	h := Mismatch{Commit: Hex(in), Name: name, Path: filepath.FromSlash(path.Join("/", d.worktreePath, path.Join("/", name))), Before: now, ID: Hex(e.id)}
	if e.mode&format.ModeType != format.ModeGitlink {
		h.After = d.blob(e)
	}
	d.found.Mismatches = append(d.found.Mismatches, h)
}

// equal reports whether a file of the worktree is equal to an entry; false for nil and for a
// submodule. If a file of at most maxParsed bytes differs only in line ends, CRLF in the
// worktree and LF in the entry, both equal and ends are set.
func (d *dir) equal(v *tool.Version, e entry) (equal, ends bool, err error) {
	size := d.store.hashSize
	switch link := e.mode&format.ModeType == format.ModeLink; {
	case v == nil || e.mode&format.ModeType == format.ModeGitlink:
		return false, false, nil
	case link:
		return v.Mode&fs.ModeSymlink != 0 && hashObject(size, format.Blob, []byte(v.Target)) == e.id, false, nil
	case !v.IsFile() || (v.Mode&0o100 != 0) != (e.mode&0o100 != 0) && !d.ignoreMode:
		return false, false, nil
	case !spend(&d.files.left.files, v.Size):
		return false, false, errTooLong
	case v.Size > maxParsed:
		r, err := v.Open()
		if err != nil {
			return false, false, err
		}
		defer r.Close()
		h := newObjectHash(size, format.Blob, v.Size)
		_, err = io.CopyN(h, r, v.Size)
		return string(h.Sum(nil)) == e.id, false, err
	}
	data, err := v.Content(maxParsed)
	if err != nil || hashObject(size, format.Blob, data) == e.id {
		return err == nil, false, err
	}
	lf := bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	equal = len(lf) < len(data) && hashObject(size, format.Blob, lf) == e.id
	return equal, equal, nil
}

// blob returns the file of an entry. Its Open fails if the object exceeds a limit or is missing.
func (d *dir) blob(e entry) *tool.Version {
	o, err := d.store.read(e.id, min(maxParsed, d.files.left.blobs))
	if err == nil && (o.kind != format.Blob || !spend(&d.files.left.blobs, int64(len(o.data)))) {
		err = errTooLong
	}
	d.found.Incomplete = d.found.Incomplete || err != nil
	v := &tool.Version{Mode: 0o644, Size: int64(len(o.data)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(o.data)), err
	}}
	switch {
	case e.mode&format.ModeType == format.ModeLink:
		v.Mode, v.Target = fs.ModeSymlink|0o777, string(o.data)
	case e.mode&0o100 != 0:
		v.Mode = 0o755
	}
	return v
}

// index compares new, changed and removed entries of the index with the worktree. Its only
// error is an IntegrityError for a wrong cached tree.
func (d *dir) index(ctx context.Context) error {
	c := d.files.changed[d.path+"/index"]
	if c == nil || c[after] != nil && !c[after].IsFile() {
		return nil
	}
	was, err := readIndex(c[before], d.store.hashSize, d.files.left)
	if err != nil {
		d.found.Incomplete = true // then old entries are compared, too
	}
	is, err := readIndex(c[after], d.store.hashSize, d.files.left)
	if err == nil {
		err = is.verify(d.store.hashSize, d.files.left)
	}
	if errors.Is(err, errTrees) {
		return &IntegrityError{d.path + "/index", err.Error()}
	}
	d.found.Incomplete = d.found.Incomplete || err != nil || is.partial
	unstaged, tree := map[string]bool{}, d.headTree()
	was.changes(is, func(was, is *indexEntry) {
		switch {
		case ctx.Err() != nil:
			return
		case is == nil || is.flags&format.IntentToAdd != 0:
			if was != nil && was.flags&format.IntentToAdd == 0 { // the next commit removes it
				d.noteRemoved(was.entry, was.name, true, 0)
				v, _ := d.worktreeFile(was.name)
				if same, _, _ := d.equal(v, was.entry); !same && was.flags&format.StageMask == 0 && !d.compared[compareKey(was.name, was.entry)] && d.entryIn(tree, was.name).id != was.id {
					unstaged[was.id] = true
				}
			}
		case was == nil || was.entry != is.entry || was.flags&format.IntentToAdd != 0:
			d.compare("", is.name, is.entry)
		}
		if is != nil && (was == nil && is.flags&hideFlags != 0 || was != nil && (was.flags^is.flags)&hideFlags != 0) {
			d.found.Flagged = append(d.found.Flagged, is.name)
		}
	})
	for _, e := range is.entries { // it may have another name
		delete(unstaged, e.id)
	}
	d.found.Unstaged = len(unstaged) > 0
	return nil
}
