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

// Set is what a call changes, as people are told of it: each change is a part of one
// entry, or told by the facts of a repository. [New] makes it, and it does not change. It
// is safe for concurrent use.
type Set struct {
	Dir     string        // names below it are shown relative to it
	Changes []tool.Change // first those that entries are about
	Entries []Entry       // the greatest care first
	Unshown []Unshown     // contents that [Set.Text] does not show
	NoTime  bool          // the context has ended before all was looked at

	all          []tool.Change // the changes, and behind them what git holds
	in           []string      // which commit holds that; empty: the index
	repositories []*repository
	digest       [sha256.Size]byte
	source       *source
	hide         func(string) string // takes secrets out of a text; nil: there are none
}

// source is what sets of the same changes read from.
type source struct {
	mu     sync.Mutex // held while a content is read
	closed bool
}

// Care says why a person must not overlook a change. The greatest comes first.
type Care uint8

// The cares. [New] is told of two; the others it sees.
const (
	Plain   Care = iota
	Moved        // it is gone from a directory, and in another one now
	Open         // anybody may write to it now, or it is executed as somebody else
	Program      // it can be executed now
	Special      // it is on the list of paths that need care
	Gone         // it is removed
	Runs         // git runs it, or goes by it
	Held         // a commit or an index holds it, and the worktree does not
)

// Form is how many changes an entry stands for, and how they belong together.
type Form uint8

// The forms.
const (
	Single  Form = iota // one change, or a file that git holds
	Tree                // a directory that comes or goes, with what is in it
	Beside              // files of one kind in one directory
	Several             // changes of one care in the directories of Places
)

// Entry is what is told of some changes.
type Entry struct {
	Form    Form
	Care    Care
	Change  tool.Change // the one, that of the directory, or the first
	Where   string      // of what git holds: the hash of the commit; empty: it is the index
	Files   int         // how many files come, go or change
	Dirs    int         // how many directories
	Bytes   int64       // what the files have, or had
	Members []int       // which changes, as in [Set.At]
	Places  []Place     // of several
	From    []Place     // from which directories some of these were moved
}

// Place is a directory, and how many changes are below it.
type Place struct {
	Dir     string
	Changes int
	Others  bool // all there that no other place counts
}

// why says why a content is not shown, of one and of several.
type why [2]string

var (
	noText     = why{"it is no text", "they are no text"}
	tooLong    = why{"there is too much of it", "there is too much of them"}
	tooMany    = why{"nobody has looked whether it is text", "nobody has looked whether they are text"}
	unreadable = why{"it cannot be read", "they cannot be read"}
)

// Unshown is a content that is not shown.
type Unshown struct {
	Change int // as in [Set.At]

	why   why
	bytes int64 // that it has, or had
	known bool  // nothing comes with it: it goes, or stays as it was
	err   error // of one that is unreadable
}

// Whole reports whether a person can see all that comes: no line is red. If not, an answer
// holds for this call alone.
func (s *Set) Whole() bool {
	return s == nil || !slices.ContainsFunc(s.Told(1), func(t Told) bool { return t.Red })
}

// Empty reports whether nothing is changed.
func (s *Set) Empty() bool { return len(s.Changes) == 0 }

// At is a change, or behind them what git holds.
func (s *Set) At(i int) tool.Change { return s.all[i] }

// Digest identifies all that a person can be shown.
func (s *Set) Digest() [sha256.Size]byte {
	if s == nil {
		return [sha256.Size]byte{}
	}
	return s.digest
}

// Redacted is the set without secrets, which hide takes out of each text that is shown.
func (s *Set) Redacted(hide func(string) string) *Set {
	if s == nil {
		return nil
	}
	clean := *s
	clean.hide = hide
	return &clean
}

// Close waits for who reads a content, and lets nobody begin: what it is read from may
// end.
func (s *Set) Close() {
	if s != nil {
		s.source.mu.Lock()
		defer s.source.mu.Unlock()
		s.source.closed = true
	}
}

// New is what people are told of changes. Names are relative to dir where they are below
// it. dirs are what [git.Check] has found in them. care says which changes are [Special] and
// which git [Runs], and else [Plain]; nil: it is not known. After the end of ctx nothing is
// read. Contents can be read until [Set.Close].
func New(ctx context.Context, changes []tool.Change, dir string, care func(tool.Change) Care, dirs ...*git.Dir) *Set {
	s := group(ctx, changes, dir, care, dirs...)
	s.look(ctx)
	s.NoTime = ctx.Err() != nil
	return s
}

// group is a set of which no content was read but what git wrote, and what may have moved.
func group(ctx context.Context, changes []tool.Change, dir string, care func(tool.Change) Care, dirs ...*git.Dir) *Set {
	s := &Set{Dir: dir, source: &source{}}
	found, others := repositories(changes, dirs)
	s.repositories = found
	var told, held []tool.Change
	for _, r := range found {
		others = append(others, r.tells(ctx)...)
		told, held, s.in = append(told, r.told...), append(held, r.held...), append(s.in, r.in...)
	}
	others = Moves(ctx, others)
	key := func(c tool.Change) string { return strings.ReplaceAll(c.Path, "/", "\x00") } // what is below a directory follows it
	slices.SortStableFunc(others, func(a, b tool.Change) int { return strings.Compare(key(a), key(b)) })
	s.all = slices.Concat(others, told, held)
	s.Changes = s.all[:len(others)+len(told)]
	s.Entries = grouped(others, care)
	for i := range held {
		s.Entries = append(s.Entries, s.single(len(s.Changes)+i))
	}
	slices.SortStableFunc(s.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Care, a.Care), a.news()/2-b.news()/2)
	})
	s.NoTime = ctx.Err() != nil
	return s
}

// single is the entry of one change.
func (s *Set) single(i int) Entry {
	e := Entry{Change: s.all[i], Files: 1, Members: []int{i}}
	if held := i - len(s.Changes); held >= 0 {
		e.Care, e.Where = Held, s.in[held]
	}
	return e
}

// news is where it stands where not all have room: what was there before comes first, and
// what is new before what nothing happens to but a time, which comes last in any case.
func (e Entry) news() int {
	switch e.Change.Kind {
	case tool.Created, tool.DirectoryCreated:
		return 1
	case tool.Times:
		return 2
	}
	return 0
}

func careOf(c tool.Change, care func(tool.Change) Care) Care {
	known := Plain
	if care != nil {
		known = care(c)
	}
	var was fs.FileMode
	if c.Before != nil {
		was = c.Before.Mode
	}
	switch {
	case c.Kind == tool.Removed || c.Kind == tool.DirectoryRemoved:
		return Gone
	case known != Plain:
		return known
	case c.After == nil:
	case regular(c.After) && c.After.Mode&0o111 != 0 && was&0o111 == 0:
		return Program
	case c.After.Mode.Type() != fs.ModeSymlink && bitsForOthers(c.After.Mode)&^was != 0:
		return Open
	case movedFrom(c) != "":
		return Moved
	}
	return Plain
}

// movedFrom is the directory that a change takes something out of; empty: it takes nothing.
func movedFrom(c tool.Change) string {
	if dir := filepath.Dir(c.From); c.Kind == tool.Renamed && dir != filepath.Dir(c.Path) {
		return dir
	}
	return ""
}

// minGroup is how many changes there are at least of which some are told as one.
const minGroup = 12

// minTimes is minGroup for files of which nothing but the time is another.
const minTimes = 3

// grouped makes one entry of the changes below each directory that is new or gone, and of
// files that are new or changed in another one, if there are many. The changes are in the
// order of a tree.
func grouped(changes []tool.Change, care func(tool.Change) Care) []Entry {
	var all []Entry
	tree := -1 // the last that may hold what follows
	for i, c := range changes {
		care := careOf(c, care)
		if tree >= 0 && len(changes) >= minGroup && all[tree].holds(c, care) {
			all[tree].Form = Tree
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
	return besides(all)
}

// besides makes one entry of many files of one kind in one directory.
func besides(all []Entry) []Entry {
	type place struct {
		kind tool.ChangeKind
		care Care
		dir  string
	}
	none := place{}
	placeOf := func(e Entry) place {
		kind := e.Change.Kind
		if (kind == tool.Created || kind == tool.Modified || kind == tool.Times) && regular(e.Change.After) && (e.Care == Plain || e.Care == Program) {
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
		if p.kind == tool.Times {
			least = minTimes
		}
		if i, ok := first[p]; ok {
			short[i].add(e.Change, e.Members[0])
			continue
		}
		if p != none && in[p] >= least {
			first[p], e.Form = len(short), Beside
		}
		short = append(short, e)
	}
	return short
}

// add makes a change a part of an entry.
func (e *Entry) add(c tool.Change, i int) {
	e.Members = append(e.Members, i)
	v := cmp.Or(c.After, c.Before)
	switch {
	case v != nil && v.Mode.IsDir() || c.Kind == tool.DirectoryCreated || c.Kind == tool.DirectoryRemoved:
		e.Dirs++
	default:
		e.Files++
		if regular(v) {
			e.Bytes += v.Size
		}
	}
}

// holds reports whether a change is a part of what a directory is told as.
func (e *Entry) holds(c tool.Change, care Care) bool {
	if !strings.HasPrefix(c.Path, e.Change.Path+"/") {
		return false
	}
	switch e.Change.Kind {
	case tool.DirectoryCreated:
		return care == Plain && (c.Kind == tool.DirectoryCreated || c.Kind == tool.Created && regular(c.After))
	case tool.DirectoryRemoved:
		return c.Kind == tool.Removed || c.Kind == tool.DirectoryRemoved
	}
	return false
}

// named is how many entries of a care are named where all are too many.
const named = 2

// short are the entries in at most about so many: of those of one care that are too many
// there is one for all, and at the end one for what is plain and has no room.
func (s *Set) short(most int) (out []Entry) {
	if len(s.Entries) <= most {
		return s.Entries
	}
	byCare := map[Care][]Entry{}
	careful := 0
	for _, e := range s.Entries {
		byCare[e.Care] = append(byCare[e.Care], e)
		if e.Care != Plain {
			careful++
		}
	}
	for care := Held; care > Plain; care-- {
		if es := byCare[care]; careful <= most/2 || len(es) <= named {
			out = append(out, es...)
		} else {
			out = append(out, s.several(es))
		}
	}
	plain := slices.Clone(byCare[Plain])
	slices.SortStableFunc(plain, func(a, b Entry) int { // what stands for most files first
		return cmp.Or(a.news()-b.news(), len(b.Members)-len(a.Members))
	})
	if room := max(most-len(out), 1); len(plain) > room {
		out = append(out, plain[:room-1]...)
		plain = []Entry{s.several(plain[room-1:])}
	}
	return append(out, plain...)
}

// several is one entry for all of these.
func (s *Set) several(entries []Entry) Entry {
	out := Entry{Form: Several, Care: entries[0].Care, Change: entries[0].Change}
	dirs, from := map[string]int{}, map[string]int{}
	for _, e := range entries {
		if dir := movedFrom(e.Change); dir != "" { // it stands alone
			from[dir]++
		}
		out.Files, out.Dirs, out.Bytes = out.Files+e.Files, out.Dirs+e.Dirs, out.Bytes+e.Bytes
		out.Members = append(out.Members, e.Members...)
		if e.Form == Tree {
			dirs[e.Change.Path] += len(e.Members)
		} else {
			dirs[filepath.Dir(e.Change.Path)] += len(e.Members)
		}
	}
	out.Places, out.From = places(dirs), places(from)
	return out
}

// maxPlaces is how many directories are named of several changes.
const maxPlaces = 4

// places are the directories in which so many changes are, or those above them where
// these are too many; but for those with most of these. Every change is counted.
func places(dirs map[string]int) []Place {
	const maxLevels = 16 // below what all have in common
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

// upTo is a path with so many names at most behind its first bytes.
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

// bulk is how many bytes two contents have together, from which on a difference is large.
const bulk = 8 << 10

// Order is the order in which changes are shown one by one: those with a care first, and
// those with large contents last.
func (s *Set) Order() (order []int) {
	type key struct {
		care Care
		size int64
	}
	keys := make([]key, len(s.all))
	for _, e := range s.Entries {
		order = append(order, e.Members...)
		for _, i := range e.Members {
			keys[i] = key{e.Care, max(SizeOf(s.At(i)), bulk)}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(keys[b].care, keys[a].care), cmp.Compare(keys[a].size, keys[b].size))
	})
	return order
}

// SizeOf is how many bytes the contents of a change have that [Set.Text] compares.
func SizeOf(c tool.Change) (n int64) {
	if c.Kind == tool.Times || c.Kind == tool.ModeChanged {
		return 0
	}
	for _, v := range []*tool.Version{c.Before, c.After} {
		if regular(v) {
			n += v.Size
		}
	}
	return n
}

// What is shown of contents, and looked at before that.
const (
	maxShown  = 64 << 20 // bytes of all contents
	maxLooked = 10_000   // contents
)

// look reads all contents that can be shown, and finds out which cannot.
func (s *Set) look(ctx context.Context) {
	sums := sha256.New()
	for _, c := range s.all {
		fmt.Fprintf(sums, "%q %q %q", c.Path, c.From, c.Kind)
		for _, v := range []*tool.Version{c.Before, c.After} {
			if v != nil {
				fmt.Fprintf(sums, " %d %d %q %q %d %v", v.Size, v.Mode, v.Target, v.Twin, v.Names, v.ModTime)
			}
			fmt.Fprintln(sums)
		}
	}
	fmt.Fprintf(sums, "%q", s.in)
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
		u := Unshown{Change: i, why: noText, bytes: cmp.Or(c.After, c.Before).Size, known: c.After == nil}
		looked++
		switch {
		case looked > maxLooked || ctx.Err() != nil:
			u.why = tooMany
		case size > left:
			u.why = tooLong
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
				u.why, u.err = unreadable, err
			case isErr != nil && isErr != errNoText:
				u.why, u.err = unreadable, isErr
			default:
				u.known = u.known || regular(c.Before) && was == is
			}
		}
		u.known = u.known || ctx.Err() == nil && stays(c, &equal)
		s.Unshown = append(s.Unshown, u)
	}
	sums.Sum(s.digest[:0])
}

// maxEqual is how many bytes are read of contents that are not shown, before and after, to
// see whether these stay.
const maxEqual = 256 << 20

// stays reports whether a content that is not shown is that which was there before.
func stays(c tool.Change, left *int64) bool {
	if !regular(c.Before) || !regular(c.After) || c.Before.Size != c.After.Size || !take(left, 2*c.Before.Size) {
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

// Text is the difference of a change, as in [Set.At]. It is made anew each time.
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
		return &Text{Change: c, Err: errors.New(s.Unshown[at].why[0])}
	}
	before, after, err := texts(c, maxShown)
	if err != nil {
		return &Text{Change: c, Err: err}
	}
	return compare(c, before, after, s.hide)
}

// Hides reports whether a line that comes holds a secret, and so is not shown as it is.
func (s *Set) Hides() bool {
	if s == nil || s.hide == nil {
		return false
	}
	return slices.ContainsFunc(s.Order(), func(i int) bool {
		after, _, err := read(s.At(i).After, maxShown)
		if err != nil || s.hide(after.text) == after.text {
			return false
		}
		return s.Text(i).hidden > 0
	})
}

// Of is the change of one text file in unified format, 64 KiB at most, and how many
// lines it adds and removes, all of them counted. Names are as in [New]. It is empty for
// what is no text, or has more than 128 KiB before or after, and where secret says yes to
// one of both: of a secret of several lines a diff may have a few, which nobody knows for
// a part of it.
func Of(c tool.Change, dir string, secret func(text []byte) bool) (text string, added, removed int) {
	before, after, err := texts(c, maxText)
	if err != nil {
		return "", 0, 0
	}
	t := compare(c, before, after, nil)
	if secret([]byte(before.text)) || secret([]byte(after.text)) {
		return "", t.Added, t.Removed
	}
	return cut((&Set{Dir: dir}).unified(t)), t.Added, t.Removed
}
