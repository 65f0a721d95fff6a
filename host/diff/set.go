package diff

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/tool"
)

// Set holds the changes of a call, grouped for people. Each change belongs to one entry, or is
// described by the facts of a repository. A set does not change; concurrent use is safe.
type Set struct {
	Dir      string        // directory to which the paths below it are shown relative
	Changes  []tool.Change // first those of entries, then those that facts describe
	Entries  []Entry       // sorted, the highest care first
	Unshown  []Unshown     // contents that [Set.Text] does not show
	TimedOut bool          // the context ended before everything was examined

	all          []tool.Change // Changes, then those of repository.held
	heldIn       []string      // hash of the commit of each of the latter; empty: the index
	repositories []*repository
	digest       [sha256.Size]byte // see Digest
	source       *source
	hide         func(string) string // returns a text without its secrets; nil: there are none
}

// source guards the reading of contents. All copies of a set share it.
type source struct {
	mu     sync.Mutex // held while a content is read
	closed bool       // Close was called
}

// Care is the reason why a person must not overlook a change. Higher values are shown first.
type Care uint8

// The cares. [New] gets four of them from its callback, and finds the others.
const (
	CarePlain      Care = iota // there is no reason
	CareIgnored                // git ignores the file: it is only counted
	CareMoved                  // the file comes from another directory
	CareExposed                // it becomes writable by anybody, or the file runs as another user or group
	CareExecutable             // the file becomes executable
	CareSpecial                // the path is on the list of paths that need care
	CareRemoved                // the file or directory is removed
	CareRunByGit               // git runs or obeys the file
	CareHeldByGit              // a commit or the index has another version than the worktree
)

// Form is the way in which an entry groups changes.
type Form uint8

const (
	FormSingle  Form = iota // one change, or a file that git holds
	FormTree                // a new or removed directory with all below it that has no other care
	FormSameDir             // changes of one kind, of files in one directory
	FormSeveral             // changes of one care in the directories of Places
)

// Entry is one change, or several that are shown together.
type Entry struct {
	Form    Form
	Care    Care
	Change  tool.Change // the only change, that of the directory, or the first one
	Commit  string      // for CareHeldByGit: hash of the commit; empty: the index
	Files   int         // number of new, changed or removed files
	Dirs    int         // number of directories
	Bytes   int64       // bytes of these files after the change; of removed ones before; for CareHeldByGit 0
	Members []int       // indexes of the changes, for [Set.At]
	Places  []Place     // for FormSeveral: the directories of the changes
	From    []Place     // for FormSeveral: the old directories of moved files
}

// Place is a directory, and the number of changes below.
type Place struct {
	Dir     string
	Changes int
	Others  bool // Changes leaves out those that other places count
}

// reason is the reason why a content is not shown, in words for one and for several files.
type reason [2]string

var (
	noText     = reason{"it is no text", "they are no text"}
	tooLong    = reason{"there is too much of it", "there is too much of them"}
	tooMany    = reason{"it was not read", "they were not read"}
	unreadable = reason{"it cannot be read", "they cannot be read"}
)

// Unshown is a content that [Set.Text] does not show.
type Unshown struct {
	Change int // index of its change, for Set.At

	reason     reason
	bytes      int64 // size of the file after the change; of a removed file before
	nothingNew bool  // the file is removed, or its content stays
	err        error // error of reading, if reason is unreadable
}

// ShowsAll reports whether a person can see everything that is new; it is true for nil. If it
// is false, a [SummaryLine] has NotShown set, and an answer holds for this call only.
func (s *Set) ShowsAll() bool {
	return s == nil || !slices.ContainsFunc(s.SummaryLines(1), func(t SummaryLine) bool { return t.NotShown })
}

// Empty reports whether nothing is changed.
func (s *Set) Empty() bool { return len(s.Changes) == 0 }

// At returns the change with an index. Those after the indexes of Changes are of
// CareHeldByGit.
func (s *Set) At(i int) tool.Change { return s.all[i] }

// Digest returns a hash of everything that a person can be shown; zero for nil.
func (s *Set) Digest() [sha256.Size]byte {
	if s == nil {
		return [sha256.Size]byte{}
	}
	return s.digest
}

// Redacted returns a copy of the set in which hide takes the secrets out of each shown text.
func (s *Set) Redacted(hide func(string) string) *Set {
	if s == nil {
		return nil
	}
	clean := *s
	clean.hide = hide
	return &clean
}

// Close waits until [Set.Text] reads no content, and prevents further reads by it. After Close
// the files of the set may be removed.
func (s *Set) Close() {
	if s != nil {
		s.source.mu.Lock()
		defer s.source.mu.Unlock()
		s.source.closed = true
	}
}

// New groups changes for people. Paths below dir are shown relative to dir. care returns
// [CareSpecial], [CareRunByGit], [CareIgnored] or else [CarePlain] for a change; it may be nil.
// dirs are the results of [git.Check] for the changes. New stops reading soon after the end of
// ctx; methods can read contents until [Set.Close].
func New(ctx context.Context, changes []tool.Change, dir string, care func(tool.Change) Care, dirs ...*git.Dir) *Set {
	s := group(ctx, changes, dir, care, dirs...)
	s.readContents(ctx)
	s.TimedOut = ctx.Err() != nil
	return s
}

// group returns the set of [New] without Unshown and the digest. It reads contents for facts
// and renames only.
func group(ctx context.Context, changes []tool.Change, dir string, care func(tool.Change) Care, dirs ...*git.Dir) *Set {
	s := &Set{Dir: dir, source: &source{}}
	found, others := repositories(changes, dirs)
	s.repositories = found
	var described, held []tool.Change
	for _, r := range found {
		others = append(others, r.collectFacts(ctx)...)
		described, held, s.heldIn = append(described, r.described...), append(held, r.held...), append(s.heldIn, r.heldIn...)
	}
	others = DetectRenames(ctx, others)
	key := func(c tool.Change) string { return strings.ReplaceAll(c.Path, "/", "\x00") } // sorts the entries of a directory right after the directory
	slices.SortStableFunc(others, func(a, b tool.Change) int { return strings.Compare(key(a), key(b)) })
	s.all = slices.Concat(others, described, held)
	s.Changes = s.all[:len(others)+len(described)]
	all := grouped(others, care)
	isIgnored := func(e Entry) bool { return e.Care == CareIgnored }
	s.Entries = slices.DeleteFunc(slices.Clone(all), isIgnored)
	if ignored := slices.DeleteFunc(all, func(e Entry) bool { return !isIgnored(e) }); len(ignored) > 0 {
		s.Entries = append(s.Entries, s.several(ignored)) // one entry counts all of them
	}
	for i := range held {
		s.Entries = append(s.Entries, s.single(len(s.Changes)+i))
	}
	slices.SortStableFunc(s.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Care, a.Care), a.rank()/2-b.rank()/2)
	})
	s.TimedOut = ctx.Err() != nil
	return s
}

func (s *Set) single(i int) Entry {
	e := Entry{Change: s.all[i], Files: 1, Members: []int{i}}
	if held := i - len(s.Changes); held >= 0 {
		e.Care, e.Commit = CareHeldByGit, s.heldIn[held]
	}
	return e
}

// rank returns the rank of an entry among others of its care, for when space is short: 0 for
// changes of existing files, 1 for new files and directories, 2 for changes of times.
func (e Entry) rank() int {
	switch e.Change.Kind {
	case tool.Created, tool.DirectoryCreated:
		return 1
	case tool.TimesChanged:
		return 2
	}
	return 0
}

// careOf returns the care of a change. care is as in [New].
func careOf(c tool.Change, care func(tool.Change) Care) Care {
	known := CarePlain
	if care != nil {
		known = care(c)
	}
	var was fs.FileMode
	if c.Before != nil {
		was = c.Before.Mode
	}
	switch {
	case c.Kind == tool.Removed || c.Kind == tool.DirectoryRemoved:
		return CareRemoved
	case known != CarePlain:
		return known
	case c.After == nil:
	case c.After.IsFile() && c.After.Mode&0o111 != 0 && was&0o111 == 0:
		return CareExecutable
	case c.After.Mode.Type() != fs.ModeSymlink && bitsForOthers(c.After.Mode)&^was != 0:
		return CareExposed
	case movedFrom(c) != "":
		return CareMoved
	}
	return CarePlain
}

// movedFrom returns the old directory of a file that a rename moves to another directory, or
// "".
func movedFrom(c tool.Change) string {
	if dir := filepath.Dir(c.From); c.Kind == tool.Renamed && dir != filepath.Dir(c.Path) {
		return dir
	}
	return ""
}

// minGroup is the lowest number of files of a directory that become one entry. With at least
// as many changes in all, a new or removed directory becomes one entry with its content.
const minGroup = 12

// minTimes is minGroup for files whose times alone change.
const minTimes = 3

// grouped returns the entries of changes. If there are many, it makes one entry for a new or
// removed directory with all below it that has no other care, and one for files of one
// kind in one directory. The changes must be sorted as a tree.
func grouped(changes []tool.Change, care func(tool.Change) Care) []Entry {
	var all []Entry
	tree := -1 // the index of the last new or removed directory
	for i, c := range changes {
		care := careOf(c, care)
		if tree >= 0 && len(changes) >= minGroup && all[tree].covers(c, care) {
			all[tree].Form = FormTree
			all[tree].add(c, i)
			continue
		}
		e := Entry{Care: care, Change: c}
		e.add(c, i)
		if c.Kind == tool.DirectoryCreated || c.Kind == tool.DirectoryRemoved {
			if tree < 0 || !strings.HasPrefix(c.Path, all[tree].Change.Path+"/") || all[tree].Change.Kind != c.Kind {
				tree = len(all)
			}
		}
		all = append(all, e)
	}
	return joinSiblings(all)
}

func joinSiblings(all []Entry) []Entry {
	type place struct {
		kind tool.ChangeKind
		care Care
		dir  string
	}
	none := place{}
	placeOf := func(e Entry) place {
		kind := e.Change.Kind
		if (kind == tool.Created || kind == tool.Modified || kind == tool.TimesChanged) && e.Change.After.IsFile() && (e.Care == CarePlain || e.Care == CareExecutable) {
			return place{kind, e.Care, filepath.Dir(e.Change.Path)}
		}
		return none
	}
	in := map[place]int{}
	for _, e := range all {
		in[placeOf(e)]++
	}
	first := map[place]int{}
	short := all[:0]
	for _, e := range all {
		p := placeOf(e)
		least := minGroup
		if p.kind == tool.TimesChanged {
			least = minTimes
		}
		if i, ok := first[p]; ok {
			short[i].add(e.Change, e.Members[0])
			continue
		}
		if p != none && in[p] >= least {
			first[p], e.Form = len(short), FormSameDir
		}
		short = append(short, e)
	}
	return short
}

func (e *Entry) add(c tool.Change, i int) {
	e.Members = append(e.Members, i)
	v := cmp.Or(c.After, c.Before)
	switch {
	case v != nil && v.Mode.IsDir() || c.Kind == tool.DirectoryCreated || c.Kind == tool.DirectoryRemoved:
		e.Dirs++
	default:
		e.Files++
		if v.IsFile() {
			e.Bytes += v.Size
		}
	}
}

// covers reports whether the entry of a new or removed directory can stand for a change, too.
func (e *Entry) covers(c tool.Change, care Care) bool {
	if !strings.HasPrefix(c.Path, e.Change.Path+"/") {
		return false
	}
	switch e.Change.Kind {
	case tool.DirectoryCreated:
		return care == CarePlain && (c.Kind == tool.DirectoryCreated || c.Kind == tool.Created && c.After.IsFile())
	case tool.DirectoryRemoved:
		return c.Kind == tool.Removed || c.Kind == tool.DirectoryRemoved
	}
	return false
}

// maxListed limits the entries of a care that are listed separately if space is short.
const maxListed = 2

// short returns about limit entries at most. If a care has too many, they are joined into one.
// Plain entries without room are joined into one at the end.
func (s *Set) short(limit int) (out []Entry) {
	if len(s.Entries) <= limit {
		return s.Entries
	}
	byCare := map[Care][]Entry{}
	careful := 0
	for _, e := range s.Entries {
		byCare[e.Care] = append(byCare[e.Care], e)
		if e.Care != CarePlain {
			careful++
		}
	}
	for care := CareHeldByGit; care > CarePlain; care-- {
		if es := byCare[care]; careful <= limit/2 || len(es) <= maxListed {
			out = append(out, es...)
		} else {
			out = append(out, s.several(es))
		}
	}
	plain := slices.Clone(byCare[CarePlain])
	slices.SortStableFunc(plain, func(a, b Entry) int { // largest groups first
		return cmp.Or(a.rank()-b.rank(), len(b.Members)-len(a.Members))
	})
	if room := max(limit-len(out), 1); len(plain) > room {
		out = append(out, plain[:room-1]...)
		plain = []Entry{s.several(plain[room-1:])}
	}
	return append(out, plain...)
}

func (s *Set) several(entries []Entry) Entry {
	out := Entry{Form: FormSeveral, Care: entries[0].Care, Change: entries[0].Change}
	dirs, from := map[string]int{}, map[string]int{}
	for _, e := range entries {
		if dir := movedFrom(e.Change); dir != "" { // a moved file is always an entry of its own
			from[dir]++
		}
		out.Files, out.Dirs, out.Bytes = out.Files+e.Files, out.Dirs+e.Dirs, out.Bytes+e.Bytes
		out.Members = append(out.Members, e.Members...)
		if e.Form == FormTree || e.Care == CareIgnored && e.Dirs > 0 {
			dirs[e.Change.Path] += len(e.Members)
		} else {
			dirs[filepath.Dir(e.Change.Path)] += len(e.Members)
		}
	}
	out.Places, out.From = places(dirs), places(from)
	return out
}

// maxPlaces limits the places that are named for several changes, with one for the rest.
const maxPlaces = 4

// places returns the directories with the most changes, and one place for the rest. If there
// are too many directories, it returns directories above them. dirs holds numbers of changes.
// Every change is counted once.
func places(dirs map[string]int) []Place {
	const maxLevels = 16 // below the deepest common directory
	all, top := 0, ""
	for dir, n := range dirs {
		if all += n; top == "" {
			top = dir
		}
		for len(top) > 1 && !strings.HasPrefix(dir+"/", top+"/") {
			top = filepath.Dir(top)
		}
	}
	if all == 0 {
		return nil
	}
	best := []Place{{Dir: top, Changes: all}}
	for level := range maxLevels {
		next := map[string]int{}
		for dir, n := range dirs {
			next[upTo(dir, len(strings.TrimSuffix(top, "/")), level+1)] += n
		}
		var in []Place
		for dir, n := range next {
			in = append(in, Place{Dir: dir, Changes: n})
		}
		slices.SortFunc(in, func(a, b Place) int { return cmp.Or(cmp.Compare(b.Changes, a.Changes), strings.Compare(a.Dir, b.Dir)) })
		if len(in) > maxPlaces {
			if in[0].Changes < minGroup && 4*in[0].Changes < all {
				break
			}
			rest := Place{Dir: top, Changes: all, Others: true}
			in = in[:maxPlaces-1]
			for _, p := range in {
				rest.Changes -= p.Changes
			}
			in = append(in, rest)
		}
		best = in
	}
	return best
}

// upTo cuts a path after a number of names, counted from the position from.
func upTo(path string, from, names int) string {
	for i := from + 1; i < len(path); i++ {
		if path[i] == '/' {
			if names--; names == 0 {
				return path[:i]
			}
		}
	}
	return path
}

// largeBytes is the size, before and after together, up to which [Set.Order] ranks contents
// equally.
const largeBytes = 8 << 10

// Order returns the indexes, for [Set.At], of the changes of all entries in the order of
// display: the highest care first, and within one care large contents last. Files that git
// ignores are left out.
func (s *Set) Order() (order []int) {
	type key struct {
		care Care
		size int64
	}
	keys := make([]key, len(s.all))
	for _, e := range s.Entries {
		if e.Care == CareIgnored {
			continue
		}
		order = append(order, e.Members...)
		for _, i := range e.Members {
			keys[i] = key{e.Care, max(SizeOf(s.At(i)), largeBytes)}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(keys[b].care, keys[a].care), cmp.Compare(keys[a].size, keys[b].size))
	})
	return order
}

// SizeOf returns the number of bytes that [Set.Text] compares for a change.
func SizeOf(c tool.Change) (n int64) {
	if c.Kind == tool.TimesChanged || c.Kind == tool.ModeChanged {
		return 0
	}
	for _, v := range []*tool.Version{c.Before, c.After} {
		if v.IsFile() {
			n += v.Size
		}
	}
	return n
}

// Limits of the contents that are read; the others are in Unshown.
const (
	maxShown = 64 << 20 // bytes of all contents
	maxRead  = 10_000   // number of changes
)

// readContents reads all contents that can be shown. It sets Unshown and the digest.
func (s *Set) readContents(ctx context.Context) {
	sums := sha256.New()
	for _, c := range s.all {
		fmt.Fprintf(sums, "%q %q %q", c.Path, c.From, c.Kind)
		for _, v := range []*tool.Version{c.Before, c.After} {
			if v != nil {
				fmt.Fprintf(sums, " %d %d %q %q %d %v", v.Size, v.Mode, v.Target, v.HardLink, v.LinkCount, v.ModTime)
			}
			fmt.Fprintln(sums)
		}
	}
	fmt.Fprintf(sums, "%q", s.heldIn)
	for _, r := range s.repositories {
		fmt.Fprintf(sums, "%q %#v", r.root, r.facts)
	}
	left, equal, looked := int64(maxShown), int64(maxEqual), 0
	for _, i := range s.Order() {
		c := s.At(i)
		size := SizeOf(c)
		if size == 0 {
			continue
		}
		u := Unshown{Change: i, reason: noText, bytes: cmp.Or(c.After, c.Before).Size, nothingNew: c.After == nil}
		looked++
		switch {
		case looked > maxRead || ctx.Err() != nil:
			u.reason = tooMany
		case size > left:
			u.reason = tooLong
		default:
			left -= size
			_, was, err := read(c.Before, maxShown)
			_, is, isErr := read(c.After, maxShown)
			sums.Write(was[:])
			sums.Write(is[:])
			switch {
			case err == nil && isErr == nil:
				continue
			case err != nil && err != errNoText:
				u.reason, u.err = unreadable, err
			case isErr != nil && isErr != errNoText:
				u.reason, u.err = unreadable, isErr
			default:
				u.nothingNew = u.nothingNew || c.Before.IsFile() && was == is
			}
		}
		u.nothingNew = u.nothingNew || ctx.Err() == nil && sameContent(c, &equal)
		s.Unshown = append(s.Unshown, u)
	}
	sums.Sum(s.digest[:0])
}

// maxEqual limits the bytes, before and after together, of contents that are not shown, but
// compared to find out whether they stay the same. Others count as new.
const maxEqual = 256 << 20

// sameContent reports whether a content that is not shown is the same as before. left is the
// rest of maxEqual; without enough of it the result is false.
func sameContent(c tool.Change, left *int64) bool {
	if !c.Before.IsFile() || !c.After.IsFile() || c.Before.Size != c.After.Size || !spend(left, 2*c.Before.Size) {
		return false
	}
	before, err := c.Before.SHA256()
	if err != nil {
		return false
	}
	after, err := c.After.SHA256()
	return err == nil && after == before
}

var errClosed = errors.New("the call does not wait for an answer any more")

// Text returns the difference of the change with an index, see [Set.At], computed anew.
func (s *Set) Text(i int) *Text {
	c := s.At(i)
	if SizeOf(c) == 0 {
		return &Text{Change: c}
	}
	s.source.mu.Lock()
	defer s.source.mu.Unlock()
	if s.source.closed {
		return &Text{Change: c, Err: errClosed}
	}
	if at := slices.IndexFunc(s.Unshown, func(u Unshown) bool { return u.Change == i }); at >= 0 {
		return &Text{Change: c, Err: errors.New(s.Unshown[at].reason[0])}
	}
	before, after, err := readBoth(c, maxShown)
	if err != nil {
		return &Text{Change: c, Err: err}
	}
	return compare(c, before, after, s.hide)
}

// HidesSecrets reports whether an added line contains a secret, in place of which hide shows
// something else.
func (s *Set) HidesSecrets() bool {
	if s == nil || s.hide == nil {
		return false
	}
	return slices.ContainsFunc(s.Order(), func(i int) bool {
		after, _, err := read(s.At(i).After, maxShown)
		if err != nil || s.hide(after.text) == after.text {
			return false
		}
		return s.Text(i).hiddenAdded > 0
	})
}

// Unified returns at most 64 KiB of the change of one text file in unified format, and the
// numbers of all added and removed lines. dir is as in [New]. The text is empty if the file is
// not text, cannot be read, or has more than 128 KiB before or after; then the numbers are 0. It
// is also empty if secret reports true for either version: a diff may show some lines of a
// longer secret, which nobody could detect there.
func Unified(c tool.Change, dir string, secret func(text []byte) bool) (text string, added, removed int) {
	before, after, err := readBoth(c, maxText)
	if err != nil {
		return "", 0, 0
	}
	t := compare(c, before, after, nil)
	if secret([]byte(before.text)) || secret([]byte(after.text)) {
		return "", t.Added, t.Removed
	}
	return cut((&Set{Dir: dir}).unified(t)), t.Added, t.Removed
}
