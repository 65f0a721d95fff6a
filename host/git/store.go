package git

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/tool"
)

// What is looked at at most, for one change set.
const (
	maxObjects = 400_000  // of a pack
	maxPack    = 1 << 30  // bytes of one
	maxParsed  = 16 << 20 // bytes of an object that is read as a whole
)

// budget is what is left of what is looked at for one change set.
type budget struct {
	bytes   int64 // of objects that are verified, inflated
	files   int64 // bytes of files that are compared
	index   int64 // bytes of indexes, and of the names in them
	commits int64 // that are read
	trees   int64 // likewise
	held    int64 // bytes of contents that are shown
}

func newBudget() *budget {
	return &budget{bytes: 1 << 30, files: 1 << 30, index: 128 << 20, commits: 20_000, trees: 20_000, held: 64 << 20}
}

// take reports whether n is left, and takes it.
func take(left *int64, n int64) bool {
	if n > *left {
		return false
	}
	*left -= n
	return true
}

// short is an id in the digits that people read.
func short(id string) string { return hex.EncodeToString([]byte(id[:5])) }

var errMissing = errors.New("it is not there")

// store is the objects of a repository: those that it has, and those that are new.
type store struct {
	files    *files
	top      string // the directory of the host below which all is looked up
	dir      string // objects
	hashSize int
	packs    []*pack
	listed   bool
	z        inflater
	left     *budget
	cache    map[string]object
	cached   int
}

type object struct {
	kind int
	data []byte
}

func (s *store) close() {
	for _, p := range s.packs {
		p.close()
	}
}

// openPack opens a pack, as it is at one side.
func (s *store) openPack(at side, name string) (*pack, error) {
	var both [2]*file
	for i, end := range []string{".idx", ".pack"} {
		v, err := s.files.version(at, s.top, name+end)
		if err == nil {
			both[i], err = open(v)
		}
		if err != nil {
			if both[0] != nil {
				_ = both[0].Close()
			}
			return nil, err
		}
	}
	p, err := openPack(name, s.hashSize, both[0], both[1], &s.z)
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// list opens all packs.
func (s *store) list() {
	if s.listed {
		return
	}
	s.listed = true
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

// path is where an object lies if it is loose.
func (s *store) path(id string) string {
	name := hex.EncodeToString([]byte(id))
	return path.Join(s.dir, name[:2], name[2:])
}

// had reports whether the repository had an object before.
func (s *store) had(id string) bool {
	if v, err := s.files.version(before, s.top, s.path(id)); err == nil && v != nil {
		return true
	}
	s.list()
	return slices.ContainsFunc(s.packs, func(p *pack) bool {
		if c := s.files.changed[p.path+".idx"]; c != nil && c[before] == nil {
			return false
		}
		_, ok := p.find(id)
		return ok
	})
}

// missing counts the objects that were there and are nowhere any more.
func (s *store) missing(ctx context.Context) (n int) {
	gone := map[string]bool{}
	for name, c := range s.files.changed {
		rel, ok := strings.CutPrefix(name, s.dir+"/")
		if !ok || c[before] == nil || c[after] != nil || ctx.Err() != nil {
			continue
		}
		if id, ok := idOf(strings.Replace(rel, "/", "", 1)); ok && rel[2] == '/' {
			gone[id] = true
		} else if base := strings.TrimSuffix(strings.TrimSuffix(name, ".idx"), ".pack"); base != name {
			if p, err := s.openPack(before, base); err == nil && p.load() == nil {
				for i := range p.count() {
					gone[p.name(i)] = true
				}
				p.close()
			}
		}
	}
	for id := range gone {
		if !s.has(id) {
			n++
		}
	}
	return n
}

// has reports whether the repository has an object after.
func (s *store) has(id string) bool {
	if v, err := s.files.version(after, s.top, s.path(id)); err == nil && v != nil {
		return true
	}
	s.list()
	return slices.ContainsFunc(s.packs, func(p *pack) bool {
		for _, end := range []string{".idx", ".pack"} {
			if c := s.files.changed[p.path+end]; c != nil && c[after] == nil {
				return false
			}
		}
		_, ok := p.find(id)
		return ok
	})
}

const maxCached = 32 << 20

// read reads an object. One that is not what its name says is not read.
func (s *store) read(id string, most int64) (kind int, data []byte, err error) {
	if len(id) != s.hashSize {
		return 0, nil, errMissing
	}
	if o, ok := s.cache[id]; ok {
		return o.kind, o.data, nil
	}
	if kind, data, err = s.loose(id, most); errors.Is(err, errMissing) {
		s.list()
		for i, p := range s.packs {
			if at, ok := p.find(id); ok {
				s.packs[0], s.packs[i] = s.packs[i], s.packs[0] // the next one is there, too
				var o object
				o, err = p.read(p.offset(at), most, &s.left.bytes)
				kind, data = o.kind, o.data
				break
			}
		}
	}
	if err != nil {
		return 0, nil, err
	}
	if nameOf(s.hashSize, kind, data) != id {
		return 0, nil, errors.New("it is another object")
	}
	if s.cached += len(data); s.cached > maxCached || s.cache == nil {
		s.cache, s.cached = map[string]object{}, len(data)
	}
	s.cache[id] = object{kind, data}
	return kind, data, nil
}

func (s *store) loose(id string, most int64) (int, []byte, error) {
	for _, at := range []side{after, before} {
		v, err := s.files.version(at, s.top, s.path(id))
		if err != nil || v == nil {
			continue
		}
		f, err := open(v)
		if err != nil {
			return 0, nil, err
		}
		defer f.Close()
		kind, size, err := s.z.looseHeader(f)
		if err != nil {
			return 0, nil, err
		}
		if size > most {
			return 0, nil, errTooLong
		}
		data, err := io.ReadAll(io.LimitReader(s.z.zlib, size+1))
		return kind, data, err
	}
	return 0, nil, errMissing
}

// verifyLoose hashes a loose object.
func (s *store) verifyLoose(name, id string, v *tool.Version, left *budget) error {
	lies := func(err error) error {
		what := "it is another object"
		if err != nil {
			what = "it is no object: " + err.Error()
		}
		return &Lie{name, what}
	}
	f, err := open(v)
	if err != nil {
		return lies(err)
	}
	defer f.Close()
	kind, size, err := s.z.looseHeader(f)
	if err != nil {
		return lies(err)
	}
	if !take(&left.bytes, size) {
		return errTooLong
	}
	if name, err := s.z.sum(len(id), kind, size); err != nil || name != id {
		return lies(err)
	}
	return nil
}

// commit reads a commit.
func (s *store) commit(id string, left *budget) (*commit, error) {
	if !take(&left.commits, 1) {
		return nil, errTooLong
	}
	kind, data, err := s.read(id, maxParsed)
	if err != nil {
		return nil, err
	}
	c, ok := parseCommit(id, data)
	if kind != commitKind || !ok {
		return nil, errNoCommit
	}
	return c, nil
}

var errNoCommit = errors.New("it is no commit")

// peel reads a commit, or the one that a tag is of.
func (s *store) peel(id string, left *budget) (*commit, error) {
	for range maxChain {
		kind, data, err := s.read(id, maxParsed)
		if err != nil {
			return nil, err
		}
		if kind != tagKind {
			break
		}
		line, _, _ := strings.Cut(string(data), "\n")
		var ok bool
		if id, ok = idOf(strings.TrimPrefix(line, "object ")); !ok || !take(&left.commits, 1) {
			return nil, errNoCommit
		}
	}
	return s.commit(id, left)
}

// tree reads a tree; of no id, an empty one.
func (s *store) tree(id string, left *budget) (names []string, entries map[string]entry, err error) {
	if id == "" {
		return nil, nil, nil
	}
	if !take(&left.trees, 1) {
		return nil, nil, errTooLong
	}
	kind, data, err := s.read(id, maxParsed)
	if err != nil {
		return nil, nil, err
	}
	names, entries, ok := parseTree(s.hashSize, data)
	if kind != treeKind || !ok {
		return nil, nil, errors.New("it is no tree")
	}
	return names, entries, nil
}
