package main

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/stockade-dev/stockade/guests/git/repo"
	"github.com/stockade-dev/stockade/guests/internal/gitignore"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/sdk/go/digest"
	"github.com/stockade-dev/stockade/sdk/go/lines"
	"github.com/stockade-dev/stockade/sdk/go/search"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// scan compares the files of the worktree with the index, directory by directory.
type scan struct {
	*call
	index     *repo.Index
	changes   []change
	untracked []string // untracked paths; an untracked directory ends in a slash
	exists    []bool   // set for index entries whose file exists, or whose directory could not be read
	sameTimes []bool   // set for index entries whose file is surely unchanged, by its size and times
	reread    int      // units of work so far for files that were read again
	notReread int      // number of files that were not compared because reread was too large
}

// Costs of reading a file again, see [repo.MaxWork].
const (
	workReread         = 220 // units of work for each file
	rereadBytesPerUnit = 200 // bytes per unit of work
)

// maxReread limits the units of work for reading files again. Further files are not compared.
var maxReread = repo.MaxWork / 2

// scanWorktree compares the files of the worktree with the index. untracked is set if
// untracked files are listed, too.
func (c *call) scanWorktree(x *repo.Index, untracked bool) (*scan, error) {
	if c.Worktree == "" {
		return nil, repo.Unsupported("the repository is bare: it has no files to compare with; log, and diff and show with a revision, work")
	}
	s := &scan{call: c, index: x, exists: make([]bool, len(x.Entries)), sameTimes: make([]bool, len(x.Entries))}
	if err := s.compareTimes(); err != nil {
		return nil, err
	}
	entries, err := readDir(c.Worktree)
	if err != nil {
		return nil, tool.IO("list %s: %w; grant it with --mount, if it exists", c.Worktree, err)
	}
	if c.showsGitDirOnly(entries) {
		return nil, repo.Unsupported("the files of %s are not visible here, but only its git directory is; grant the directory with --mount; "+
			"log, show, and diff with staged or A..B, work", displayName(c.Worktree))
	}
	if err := s.dir("", entries, 0, len(x.Entries), untracked, nil); err != nil {
		return nil, err
	}
	for i, seen := range s.exists {
		e := &x.Entries[i]
		if seen || e.Stage > 0 || e.Flags&(repo.SkipWorktree|repo.AssumeValid) != 0 || e.Mode == repo.ModeGitlink || !c.covers(e.Path) {
			continue
		}
		if err := s.add(change{from: fileOf(e)}); err != nil {
			return nil, err
		}
	}
	if s.notReread > 0 {
		s.partial = true
		s.note("%s may have changed and %s not compared, as that is more than one call reads again: the index does not have their times; git status, run by bash, compares all and corrects it",
			plural(s.notReread, "file"), wasWere(s.notReread))
	}
	sortChanges(s.changes)
	slices.Sort(s.untracked)
	return s, nil
}

// showsGitDirOnly reports whether only the git directory in the worktree is granted, and not
// the worktree (listed in entries), which then is a mere parent of a mount and has no time.
func (c *call) showsGitDirOnly(entries search.Listing) bool {
	for _, e := range entries {
		if e.Name != ".git" {
			return false
		}
	}
	info, err := os.Stat(c.Worktree)
	return err == nil && info.ModTime().UnixNano() == 0
}

// compareTimes fills in sameTimes, with few calls of the host. Without a host, or because of a
// very long name, it leaves out some or all entries.
func (s *scan) compareTimes() error {
	const atOnce = 1000
	var at []int
	var names []string
	for i := range s.index.Entries {
		if e := &s.index.Entries[i]; s.isCompared(e) {
			at, names = append(at, i), append(names, s.abs(e.Path))
		}
		if len(names) < atOnce && i < len(s.sameTimes)-1 {
			continue
		}
		if err := s.Check(); err != nil {
			return err
		}
		infos, err := search.Stat(names...)
		if err != nil {
			return nil // there is no host, or a name is very long
		}
		for n, info := range infos {
			e := &s.index.Entries[at[n]]
			s.sameTimes[at[n]] = info != nil && !s.mayDiffer(e, info.Size, info.Modified, info.Changed)
		}
		at, names = at[:0], names[:0]
	}
	return nil
}

// isCompared reports whether the file of an index entry is compared with the entry: not in a
// conflict, nor if the user has told git to leave it alone, nor if the call does not cover it.
func (s *scan) isCompared(e *repo.IndexEntry) bool {
	return e.Stage == 0 && e.Flags&(repo.SkipWorktree|repo.AssumeValid) == 0 && s.covers(e.Path)
}

func fileOf(e *repo.IndexEntry) file { return file{path: e.Path, mode: e.Mode, id: e.ID} }

func (s *scan) add(ch change) error {
	if len(s.changes) == maxChanges {
		return repo.TooLarge("more than %d files differ; name a path", maxChanges)
	}
	s.changes = append(s.changes, ch)
	return nil
}

const maxAhead = 64 // directories that are listed in one call of the host, before they are scanned

// dir compares a directory, whose name ends in a slash or is "", with the index entries below
// it, from position from to before position to. untracked is set if untracked files are
// listed, too. ignore holds the ignore rules of the directories above; nil: none.
func (s *scan) dir(dir string, entries search.Listing, from, to int, untracked bool, ignore *gitignore.File) error {
	if err := s.Check(); err != nil {
		return err
	}
	abs := s.abs(strings.TrimSuffix(dir, "/"))
	if untracked {
		ignore = gitignore.LoadListed(entries, abs, ignore)
	}
	ignored := ignore.In(abs)
	var below []subdir // to be scanned
	for _, e := range entries {
		if strings.EqualFold(e.Name, ".git") {
			continue
		}
		path := dir + e.Name
		at, tracked := s.entry(path, from, to)
		switch {
		case !e.Type.IsDir() && tracked:
			if err := s.file(at, e.Type); err != nil {
				return err
			}
		case !e.Type.IsDir():
			if untracked && !ignored.Ignores(e.Name, false) {
				s.addUntracked(path)
			}
		case !s.mayHold(path + "/"):
		case tracked && s.index.Entries[at].Mode == repo.ModeGitlink:
			s.exists[at] = true
			if err := s.submodule(at); err != nil {
				return err
			}
		default:
			low, high := s.below(path+"/", from, to)
			untracked := untracked && !tracked && !ignored.Ignores(e.Name, true)
			if low < high || untracked {
				below = append(below, subdir{path, low, high, untracked})
			}
		}
	}
	for len(below) > 0 {
		listings := s.list(below)
		for i, listing := range listings {
			if err := s.subdir(below[i], listing, ignore); err != nil {
				return err
			}
		}
		below = below[len(listings):]
	}
	return nil
}

// subdir is a directory that will be scanned.
type subdir struct {
	path      string
	low, high int  // range of the index entries below the directory; low equals high: there are none
	untracked bool // set if untracked files are listed, too
}

// subdir scans a directory. listing nil: subdir itself lists the directory.
func (s *scan) subdir(d subdir, listing search.Listing, ignore *gitignore.File) error {
	if listing == nil {
		var err error
		if listing, err = readDir(s.abs(d.path)); err != nil {
			s.note("%s could not be read", quote(d.path))
			s.markExisting(d.low, d.high)
			return nil
		}
	}
	if d.low < d.high {
		return s.dir(d.path+"/", listing, d.low, d.high, d.untracked, ignore)
	}
	any, err := s.hasUntracked(d.path, listing, ignore, 0)
	if any && err == nil {
		s.addUntracked(d.path + "/")
	}
	return err
}

// markExisting marks the files of index entries, from position from to before position to, as
// existing, so that they count as unchanged.
func (s *scan) markExisting(from, to int) {
	for i := from; i < to; i++ {
		s.exists[i] = true
	}
}

func (s *scan) addUntracked(path string) {
	if s.covers(strings.TrimSuffix(path, "/")) || strings.HasSuffix(path, "/") && strings.HasPrefix(s.pathFilter+"/", path) {
		s.untracked = append(s.untracked, path)
	}
}

// list lists directories from the beginning of dirs, which must not be empty. It returns at
// least one listing, and at most maxAhead. A nil listing: the caller has to list that
// directory itself.
func (s *scan) list(dirs []subdir) []search.Listing {
	names := make([]string, min(len(dirs), maxAhead))
	for i := range names {
		names[i] = s.abs(dirs[i].path)
	}
	listings, err := search.List(names...)
	if err != nil || len(listings) == 0 {
		return make([]search.Listing, 1)
	}
	return listings
}

// hasUntracked reports whether a directory without tracked files holds a file that is not
// ignored, or is or holds a repository of its own. entries lists the directory.
func (s *scan) hasUntracked(path string, entries search.Listing, ignore *gitignore.File, depth int) (bool, error) {
	if err := s.Check(); err != nil {
		return false, err
	}
	abs := s.abs(path)
	ignore = gitignore.LoadListed(entries, abs, ignore)
	ignored := ignore.In(abs)
	for _, e := range entries {
		if e.Name == ".git" || !e.Type.IsDir() && !ignored.Ignores(e.Name, false) {
			return true, nil
		}
	}
	for _, e := range entries {
		if !e.Type.IsDir() || ignored.Ignores(e.Name, true) || depth > maxTreeDepth {
			continue
		}
		below, err := readDir(s.abs(path + "/" + e.Name))
		if err != nil {
			continue
		}
		any, err := s.hasUntracked(path+"/"+e.Name, below, ignore, depth+1)
		if any || err != nil {
			return any, err
		}
	}
	return false, nil
}

// readDir lists a directory, with one call of the host if possible.
func readDir(name string) (search.Listing, error) {
	if listings, err := search.List(name); err == nil && len(listings) > 0 && listings[0] != nil {
		return listings[0], nil
	}
	entries, err := os.ReadDir(name)
	out := make(search.Listing, len(entries))
	for i, e := range entries {
		out[i] = search.Entry{Name: e.Name(), Type: e.Type()}
	}
	return out, err
}

// entry returns the position of a path in the index, if it is between from and before to.
func (s *scan) entry(path string, from, to int) (int, bool) {
	all := s.index.Entries[from:to]
	i := sort.Search(len(all), func(i int) bool { return all[i].Path >= path })
	if i == len(all) || all[i].Path != path {
		return 0, false
	}
	return from + i, true
}

// below returns the range of the index entries, from from to before to, whose paths begin with
// a prefix.
func (s *scan) below(prefix string, from, to int) (low, high int) {
	all := s.index.Entries[from:to]
	low = sort.Search(len(all), func(i int) bool { return all[i].Path >= prefix })
	high = low + sort.Search(len(all)-low, func(i int) bool { return !strings.HasPrefix(all[low+i].Path, prefix) })
	return from + low, from + high
}

// file compares an existing file, of this kind, with its entry at a position of the index.
func (s *scan) file(at int, kind fs.FileMode) error {
	e := &s.index.Entries[at]
	s.exists[at] = true
	if !s.isCompared(e) {
		return nil
	}
	if at%64 == 0 {
		if err := s.Check(); err != nil {
			return err
		}
	}
	to := file{path: e.Path, mode: e.Mode, inWorktree: true}
	if e.Flags&repo.IntentToAdd != 0 {
		return s.add(change{to: to})
	}
	link := kind&fs.ModeSymlink != 0
	if link != (e.Mode == repo.ModeLink) {
		if to.mode = repo.ModeFile; link {
			to.mode = repo.ModeLink
		}
		return s.add(change{from: fileOf(e), to: to})
	}
	if s.sameTimes[at] {
		return nil
	}
	info, err := os.Lstat(s.abs(e.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return s.add(change{from: fileOf(e)})
	}
	if err == nil && !s.mayDiffer(e, info.Size(), info.ModTime().UnixNano(), changeTime(info)) {
		return nil
	}
	same := false
	if err == nil {
		if s.reread += workReread + int(info.Size()/rereadBytesPerUnit); s.reread > maxReread {
			s.notReread++
			return nil
		}
		same, err = s.unchanged(e, info)
	}
	if err != nil {
		if e := s.Check(); e != nil {
			return e
		}
		if _, ok := errors.AsType[*fs.PathError](err); !ok {
			return err
		}
		s.note("%s could not be read; it is taken for changed", quote(e.Path))
	}
	if same {
		return nil
	}
	return s.add(change{from: fileOf(e), to: to})
}

// mayDiffer reports whether a file may have changed since it was added: its size or times
// differ, or it was added so shortly before the index was written that times prove nothing.
func (s *scan) mayDiffer(e *repo.IndexEntry, size, modified, changed int64) bool {
	if e.Size != uint32(size) || !sameTime(e.MTime, modified) || changed != 0 && !sameTime(e.CTime, changed) {
		return true
	}
	return s.index.MTime > 0 && e.MTime >= s.index.MTime
}

// sameTime reports whether two times are equal, with nanoseconds only if both have them.
func sameTime(a, b int64) bool {
	const second = 1_000_000_000
	return a == b || a/second == b/second && (a%second == 0 || b%second == 0)
}

const (
	maxCompare = repo.MaxObject // bytes of a file; the line endings of a larger one are not normalized
	maxHashed  = 256 << 20      // bytes of a file that is read again; a larger one counts as changed
)

// unchanged reports whether the content of a file is known to be that in the index. A file
// that looks like a secret is not read: it is unchanged if it has the same size.
func (s *scan) unchanged(e *repo.IndexEntry, info fs.FileInfo) (bool, error) {
	name := s.abs(e.Path)
	if e.Mode == repo.ModeLink {
		target, err := os.Readlink(name)
		return err == nil && hashOf([]byte(target)) == e.ID, err
	}
	if _, secret := paths.SpecialForRead(name); secret {
		if e.Size == uint32(info.Size()) {
			s.note("%s looks like a secret, and was not read: by its size it is unchanged", quote(e.Path))
			return true, nil
		}
		return false, nil
	}
	if info.Size() > maxHashed {
		s.note("%s is too large to compare; its time or its size is another", quote(e.Path))
		return false, nil
	}
	a := s.attributesOf(e.Path)
	if info.Size() > maxCompare {
		return s.unchangedLarge(e, info, a)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return false, err
	}
	if a.filter == lfs {
		sum := digest.SHA256(data)
		return hashOf(lfsPointer(sum[:], int64(len(data)))) == e.ID, nil
	}
	if hashOf(data) == e.ID {
		return true, nil
	}
	if a.filter != "" {
		s.noteFilter(e, a)
		return false, nil
	}
	if a.text == "unset" || !bytes.Contains(data, []byte("\r\n")) {
		return false, nil
	}
	normal, err := s.normalizeEOL(e, a, data)
	return err == nil && hashOf(normal) == e.ID, err
}

// unchangedLarge is unchanged for a file over maxCompare, which is read in pieces.
func (s *scan) unchangedLarge(e *repo.IndexEntry, info fs.FileInfo, a attributes) (bool, error) {
	f, err := os.Open(s.abs(e.Path))
	if err != nil {
		return false, err
	}
	defer f.Close()
	if a.filter == lfs {
		sum := sha256.New()
		n, err := s.copy(sum, f)
		return err == nil && hashOf(lfsPointer(sum.Sum(nil), n)) == e.ID, err
	}
	sum := sha1.New()
	fmt.Fprintf(sum, "blob %d\x00", info.Size())
	n, err := s.copy(sum, f)
	if err != nil {
		return false, err
	}
	same := n == info.Size() && repo.ID(sum.Sum(nil)) == e.ID
	if !same && a.filter != "" {
		s.noteFilter(e, a)
	}
	return same, nil
}

// lfs is the filter of git-lfs. Repositories hold a pointer in place of the content.
const lfs = "filter=lfs"

func lfsPointer(sum []byte, size int64) []byte {
	return fmt.Appendf(nil, "version https://git-lfs.github.com/spec/v1\noid sha256:%x\nsize %d\n", sum, size)
}

func (s *scan) noteFilter(e *repo.IndexEntry, a attributes) {
	s.note("%s has the attribute %s, which is not applied here; it is taken for changed", quote(e.Path), quote(a.filter))
}

// copy is io.Copy to a hash, with checks of the call's limits in between.
func (s *scan) copy(to io.Writer, from io.Reader) (n int64, err error) {
	buf := make([]byte, 64<<10)
	for {
		k, err := from.Read(buf)
		_, _ = to.Write(buf[:k]) // a hash
		n += int64(k)
		if err == io.EOF {
			return n, nil
		}
		if err == nil {
			err = s.Check()
		}
		if err != nil {
			return n, err
		}
	}
}

// normalizeEOL returns the content of a file as git would put it into the index: without the
// CR of CRLF if attributes say so. Configuration is not read, but core.autocrlf leaves a
// trace: the file then had another size when it was added than its content in the index.
func (c *call) normalizeEOL(e *repo.IndexEntry, a attributes, data []byte) ([]byte, error) {
	if a.text == "unset" || !bytes.Contains(data, []byte("\r\n")) {
		return data, nil
	}
	if a.text != "set" && (a.eol == "" || a.text == "auto") {
		if lines.IsBinary(data) {
			return data, nil
		}
		_, blob, err := c.Read(e.ID)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(blob, []byte("\r\n")) || a.text != "auto" && (e.Size == 0 || int(e.Size) == len(blob)) {
			return data, nil
		}
	}
	return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), nil
}

func hashOf(data []byte) repo.ID {
	return digest.SHA1(append(fmt.Appendf(make([]byte, 0, len(data)+32), "blob %d\x00", len(data)), data...))
}

// submodule compares the commit that a submodule has checked out with its entry at a position
// of the index. The files in the submodule are not compared.
func (s *scan) submodule(at int) error {
	e := &s.index.Entries[at]
	name := s.abs(e.Path)
	if !s.covers(e.Path) {
		return nil
	}
	if _, err := os.Lstat(name + "/.git"); err != nil {
		return nil // it is not checked out
	}
	sub, err := repo.Open(name, s.Check)
	if err != nil {
		s.note("the submodule %s was not compared: %v", quote(e.Path), err)
		return nil
	}
	defer sub.Close()
	head, err := sub.Head()
	if err != nil || head.ID == e.ID || head.ID.IsZero() || sub.Worktree != name {
		return nil
	}
	return s.add(change{from: fileOf(e), to: file{path: e.Path, mode: e.Mode, id: head.ID}})
}
