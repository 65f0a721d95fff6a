package git

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/git/format"
)

// Limits of objects. A larger pack is not verified, a larger object not read into memory.
const (
	maxObjects = 400_000  // objects in a pack
	maxPack    = 1 << 30  // bytes of a pack
	maxParsed  = 16 << 20 // bytes of an object that is read into memory
)

// budget holds what may still be read for one change set.
type budget struct {
	bytes   int64 // remaining inflated bytes of objects
	files   int64 // remaining bytes of files of the worktree that are compared
	index   int64 // remaining bytes of indexes, and of the names in them
	commits int64 // remaining number of commits and tags
	trees   int64 // remaining number of trees
	blobs   int64 // remaining bytes of blobs whose content is shown
}

func newBudget() *budget {
	return &budget{bytes: 1 << 30, files: 1 << 30, index: 128 << 20, commits: 20_000, trees: 20_000, blobs: 64 << 20}
}

// spend subtracts n from left and returns true, or returns false if left is less than n.
func spend(left *int64, n int64) bool {
	if n > *left {
		return false
	}
	*left -= n
	return true
}

// short returns the first ten hexadecimal digits of an id.
func short(id string) string { return hex.EncodeToString([]byte(id[:5])) }

var errMissing = errors.New("it is not there")

// store reads the objects of a repository, before and after the change set. It does not look
// in alternates.
type store struct {
	files       *files
	top         string  // the directory of the host outside of which nothing is read
	dir         string  // the path of the repository's directory objects
	hashSize    int     // bytes of an id
	packs       []*pack // the packs of both sides
	packsOpened bool    // openPacks was called
	z           inflater
}

// object is an object of any kind but a delta, inflated.
type object struct {
	kind int
	data []byte
}

func (s *store) close() {
	for _, p := range s.packs {
		p.close()
	}
}

// openPacks opens all packs of both sides, once. It skips packs that cannot be opened, and the
// old version of a pack that was replaced.
func (s *store) openPacks() {
	if s.packsOpened {
		return
	}
	s.packsOpened = true
	dir := s.dir + "/pack"
	for _, at := range []side{after, before} {
		for _, name := range s.files.list(at, s.top, dir) {
			name, ok := strings.CutSuffix(name, ".idx")
			if name = dir + "/" + name; !ok || slices.ContainsFunc(s.packs, func(p *pack) bool { return p.path == name }) {
				continue
			}
			if p, err := s.openPack(at, name); err == nil {
				s.packs = append(s.packs, p)
			}
		}
	}
}

// path returns the path that an object has as a loose object.
func (s *store) path(id string) string {
	name := hex.EncodeToString([]byte(id))
	return path.Join(s.dir, name[:2], name[2:])
}

// looseID returns the id of a loose object from the path of its file. ok is false if the
// path cannot be that of a loose object.
func (s *store) looseID(name string) (id string, ok bool) {
	rel, inside := strings.CutPrefix(name, s.dir+"/")
	id, ok = parseID(strings.Replace(rel, "/", "", 1))
	return id, inside && ok && rel[2] == '/'
}

// hasPack reports whether a pack of s.packs exists on a side.
func (s *store) hasPack(p *pack, at side) bool {
	return !slices.ContainsFunc([]string{".idx", ".pack"}, func(end string) bool {
		c := s.files.changed[p.path+end]
		return c != nil && c[at] == nil
	})
}

// has reports whether the repository has an object on a side.
func (s *store) has(at side, id string) bool {
	if v, err := s.files.version(at, s.top, s.path(id)); err == nil && v != nil {
		return true
	}
	s.openPacks()
	return slices.ContainsFunc(s.packs, func(p *pack) bool {
		_, ok := p.find(id)
		return ok && s.hasPack(p, at)
	})
}

// missing returns the number of objects that the repository had before the change set and does
// not have after it. If ctx ends, the number is too low.
func (s *store) missing(ctx context.Context) (n int) {
	gone := map[string]bool{}
	s.openPacks()
	for name, c := range s.files.changed {
		if c[before] == nil || c[after] != nil {
			continue
		}
		if id, ok := s.looseID(name); ok {
			gone[id] = true
		}
		base := strings.TrimSuffix(strings.TrimSuffix(name, ".idx"), ".pack")
		if base != name && path.Dir(name) == s.dir+"/pack" && !slices.ContainsFunc(s.packs, func(p *pack) bool { return p.path == base }) {
			n++ // what it held cannot be told
		}
	}
	for _, p := range s.packs {
		switch {
		case s.hasPack(p, after):
		case p.load() != nil:
			n++
		default:
			for i := range p.count() {
				gone[p.id(i)] = true
			}
		}
	}
	for id := range gone {
		if ctx.Err() == nil && !s.has(after, id) {
			n++
		}
	}
	return n
}

// read reads an object of either side, with at most limit bytes. It returns errMissing if
// there is none, errTooLong beyond limit or the budget, and an error for a wrong hash.
func (s *store) read(id string, limit int64) (o object, err error) {
	if len(id) != s.hashSize {
		return o, errMissing
	}
	if o, err = s.loose(id, limit); errors.Is(err, errMissing) {
		s.openPacks()
		for i, p := range s.packs {
			if at, ok := p.find(id); ok {
				s.packs[0], s.packs[i] = s.packs[i], s.packs[0] // the next object is probably in the same pack
				o, err = p.read(p.offset(at), limit, &s.files.left.bytes)
				break
			}
		}
	}
	if err == nil && hashObject(s.hashSize, o.kind, o.data) != id {
		err = errors.New("it is another object")
	}
	if err != nil {
		return object{}, err
	}
	return o, nil
}

func (s *store) loose(id string, limit int64) (o object, err error) {
	for _, at := range []side{after, before} {
		v, err := s.files.version(at, s.top, s.path(id))
		if err != nil || v == nil {
			continue
		}
		f, kind, size, err := s.z.openLoose(v)
		if err != nil {
			return o, err
		}
		defer f.Close()
		if size > limit || !spend(&s.files.left.bytes, size) {
			return o, errTooLong
		}
		data, err := io.ReadAll(io.LimitReader(s.z.out, size+1))
		return object{kind, data}, err
	}
	return o, errMissing
}

// peel reads an object. It follows a tag to an object of another kind, whose id it returns.
func (s *store) peel(id string) (_ string, o object, err error) {
	for range maxChain {
		o, err = s.read(id, maxParsed)
		if err != nil || o.kind != format.Tag {
			return id, o, err
		}
		line, _, _ := strings.Cut(string(o.data), "\n")
		var ok bool
		if id, ok = parseID(strings.TrimPrefix(line, "object ")); !ok || !spend(&s.files.left.commits, 1) {
			break
		}
	}
	return id, o, errNoCommit
}

var errNoCommit = errors.New("it is no commit")

// commit reads a commit. It follows a tag to its commit.
func (s *store) commit(id string) (*commit, error) {
	if !spend(&s.files.left.commits, 1) {
		return nil, errTooLong
	}
	id, o, err := s.peel(id)
	if err != nil {
		return nil, err
	}
	c, ok := parseCommit(id, o.data)
	if o.kind != format.Commit || !ok {
		return nil, errNoCommit
	}
	return c, nil
}

// tree returns the entries of a tree, by name. An empty id stands for an empty tree.
func (s *store) tree(id string) (map[string]entry, error) {
	if id == "" {
		return nil, nil
	}
	if !spend(&s.files.left.trees, 1) {
		return nil, errTooLong
	}
	o, err := s.read(id, maxParsed)
	if err != nil {
		return nil, err
	}
	entries, ok := parseTree(s.hashSize, o.data)
	if o.kind != format.Tree || !ok {
		return nil, errors.New("it is no tree")
	}
	return entries, nil
}
