package repo

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io/fs"
	"math/bits"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/git/format"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// Rev resolves a revision to an ID, see gitrevisions(7): a reference, the beginning of an ID,
// both with ~N, ^N and ^{KIND}, and REV:PATH. An object of a whole ID need not exist.
func (r *Repo) Rev(rev string) (ID, error) {
	name, path, hasPath := strings.Cut(rev, ":")
	if hasPath {
		if name == "" {
			return ID{}, Unsupported("%q: name a revision before the colon, such as HEAD:%s", rev, strings.TrimLeft(path, ":/"))
		}
		id, err := r.Rev(name)
		if err != nil {
			return ID{}, err
		}
		return r.inTree(rev, id, path)
	}
	end := strings.IndexAny(rev, "^~")
	if i := strings.Index(rev, "@{"); i >= 0 && (end < 0 || i < end) {
		return ID{}, Unsupported("%q: what a reference was, or follows, is not looked up; name a branch or a commit", rev)
	}
	if end < 0 {
		return r.resolveName(rev)
	}
	id, err := r.resolveName(rev[:end])
	if err != nil {
		return ID{}, err
	}
	for steps := rev[end:]; steps != "" && err == nil; {
		id, steps, err = r.step(rev, id, steps)
	}
	return id, err
}

const maxSteps = 100_000 // limit for the N of ~N and ^N; a larger one is an error

// step applies the first ~N, ^N or ^{KIND} of steps to id, and returns the others.
func (r *Repo) step(rev string, id ID, steps string) (ID, string, error) {
	op := steps[0]
	if steps = steps[1:]; op == '^' && strings.HasPrefix(steps, "{") {
		word, rest, ok := strings.Cut(steps[1:], "}")
		if !ok {
			return ID{}, "", unknownRevision("%q: the brace is not closed", rev)
		}
		id, err := r.peel(rev, id, word)
		return id, rest, err
	}
	digits := 0
	for digits < len(steps) && '0' <= steps[digits] && steps[digits] <= '9' {
		digits++
	}
	n := 1
	if digits > 0 {
		var err error
		if n, err = strconv.Atoi(steps[:digits]); err != nil || n > maxSteps {
			return ID{}, "", unknownRevision("%q: the number is too large", rev)
		}
	}
	steps = steps[digits:]
	if steps != "" && steps[0] != '^' && steps[0] != '~' {
		return ID{}, "", unknownRevision("%q: %q cannot follow", rev, steps)
	}
	id, err := r.peel(rev, id, "commit")
	if err != nil || op == '^' && n == 0 {
		return id, steps, err
	}
	parent := 1
	if op == '^' {
		parent, n = n, 1
	}
	c, err := r.CommitNode(id)
	for range n {
		if err != nil {
			return ID{}, "", err
		}
		if parent > len(c.Parents) {
			return ID{}, "", unknownRevision("%q: the commit %s has %d parents%s", rev, r.Short(c.ID), len(c.Parents), r.shallowHint())
		}
		c, err = r.Parent(c, parent-1)
	}
	if err != nil {
		return ID{}, "", err
	}
	return c.ID, steps, nil
}

// shallowHint returns the end of an error about a missing parent; "": nothing to add.
func (r *Repo) shallowHint() string {
	if r.Shallow() {
		return "; the clone is shallow, and history ends there"
	}
	return ""
}

// CommitOf resolves a revision to a commit, and reads the commit. "" is HEAD.
func (r *Repo) CommitOf(rev string) (*Commit, error) {
	if rev == "" {
		rev = "HEAD"
	}
	id, err := r.Rev(rev)
	if err != nil {
		return nil, err
	}
	if id, err = r.peel(rev, id, "commit"); err != nil {
		return nil, err
	}
	return r.Commit(id)
}

const maxTags = 10 // objects in a chain of tags, with the last tag's object; more are an error

// peel follows tags, and a commit to its tree, until the object is of the kind to; "": until
// it is no tag; "object": it follows nothing. It returns an error if this does not lead to
// such an object. rev is for errors.
func (r *Repo) peel(rev string, id ID, to string) (ID, error) {
	for range maxTags {
		kind, data, _, err := r.read(id, maxCut)
		if err != nil {
			return id, err
		}
		switch {
		case kind.String() == to, to == "object", to == "" && kind != KindTag:
			return id, nil
		case kind == KindTag:
			t, err := parseTag(id, data)
			if err != nil {
				return id, err
			}
			id = t.Object
		case kind == KindCommit && to == "tree":
			c, err := r.CommitNode(id)
			if err != nil {
				return id, err
			}
			return c.Tree, nil
		default:
			return id, unknownRevision("%q is a %s, and a %s is needed", rev, kind, to)
		}
	}
	return id, Corrupt("%q is a tag of a tag without end", rev)
}

func (r *Repo) inTree(rev string, id ID, path string) (ID, error) {
	id, err := r.peel(rev, id, "tree")
	if err != nil {
		return ID{}, err
	}
	path = strings.Trim(strings.TrimPrefix(path, "./"), "/")
	if path == "" {
		return id, nil
	}
	e, found, err := r.Lookup(id, path)
	if err == nil && !found {
		err = tool.NotFound("%q: the path does not exist in that revision; paths begin at the top of the repository", rev)
	}
	return e.ID, err
}

// resolveName resolves the name of a reference, or an ID or its beginning. If there is none,
// it returns an *[UnknownError].
func (r *Repo) resolveName(name string) (ID, error) {
	if name == "@" || name == "" {
		name = "HEAD"
	}
	if id, ok := parseID(strings.ToLower(name)); ok {
		return id, nil
	}
	if format.IsRef(name) {
		for _, form := range []string{"", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"} {
			if form == "" && !strings.HasPrefix(name, "refs/") && !isRootRef(name) {
				continue
			}
			id, target, err := r.ref(form + name)
			switch {
			case err == nil:
				return id, nil
			case errors.Is(err, fs.ErrNotExist) && name == "HEAD" && target != "":
				return ID{}, unknownRevision("HEAD: the branch %s has no commits yet", strings.TrimPrefix(target, "refs/heads/"))
			case !errors.Is(err, fs.ErrNotExist):
				return ID{}, err
			}
		}
		if id, _, err := r.ref("refs/remotes/" + name + "/HEAD"); err == nil {
			return id, nil
		}
	}
	id, found, err := r.abbreviated(name)
	if err != nil || found {
		return id, err
	}
	if _, hash, ok := strings.Cut(name, "-g"); ok { // what git describe prints
		if id, found, err := r.abbreviated(hash[strings.LastIndex(hash, "-g")+1:]); err != nil || found {
			return id, err
		}
	}
	return ID{}, &UnknownError{name, unknownRevision("%q is no branch, tag or commit of this repository", name)}
}

// UnknownError is returned for a name that neither a reference nor an object has.
type UnknownError struct {
	Name string
	err  error
}

func (e *UnknownError) Error() string { return e.err.Error() }

// Unwrap returns the error with its code.
func (e *UnknownError) Unwrap() error { return e.err }

// isRootRef reports whether name looks like a reference outside of refs/, as ORIG_HEAD does.
func isRootRef(name string) bool {
	return strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

const minAbbreviated = 4 // minimum number of digits of an abbreviated ID, as in git

func (r *Repo) abbreviated(name string) (id ID, found bool, err error) {
	name = strings.ToLower(name)
	if len(name) < minAbbreviated || len(name) > 40 || strings.Trim(name, "0123456789abcdef") != "" {
		return id, false, nil
	}
	all, err := r.idsWithPrefix(name)
	if err != nil || len(all) == 0 {
		return id, false, err
	}
	if len(all) > 1 {
		// An abbreviated ID usually means a commit.
		var commits []ID
		for _, id := range all[:min(len(all), maxAmbiguous)] {
			if kind, _, _, err := r.read(id, maxCut); err == nil && (kind == KindCommit || kind == KindTag) {
				commits = append(commits, id)
			}
		}
		if len(commits) != 1 || len(all) > maxAmbiguous {
			var names []string
			for _, id := range all[:min(len(all), 5)] {
				names = append(names, id.String())
			}
			return id, false, unknownRevision("%q is the beginning of several names, such as %s", name, strings.Join(names, " and "))
		}
		all = commits
	}
	return all[0], true, nil
}

const maxAmbiguous = 100 // objects that are compared for one abbreviated ID; more are an error

// idsWithPrefix returns the IDs that begin with digits (at most 40, in lower case), sorted and
// each once. If it finds more than maxAmbiguous, it returns only some; an object in several
// packs counts for each.
func (r *Repo) idsWithPrefix(digits string) (all []ID, err error) {
	var low ID
	padded := digits + strings.Repeat("0", 40-len(digits))
	if _, err := hex.Decode(low[:], []byte(padded)); err != nil {
		return nil, nil
	}
	if err := r.listPacks(); err != nil {
		return nil, err
	}
	for _, p := range r.packs {
		if p.open(&r.pages) != nil {
			continue
		}
		i, _, err := p.search(low)
		if err != nil {
			return nil, Corrupt("read %s.idx: %v", p.name, err)
		}
		for ; i < p.count() && len(all) <= maxAmbiguous; i++ {
			id, err := p.id(i)
			if err != nil {
				return nil, Corrupt("read %s.idx: %v", p.name, err)
			}
			if !strings.HasPrefix(id.String(), digits) {
				break
			}
			all = append(all, id)
		}
	}
	for _, id := range r.looseIn(low[0]) {
		if strings.HasPrefix(id.String(), digits) && len(all) <= maxAmbiguous {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, func(a, b ID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(all), nil
}

// looseIn lists the loose objects whose IDs begin with a byte.
func (r *Repo) looseIn(first byte) []ID {
	if ids, ok := r.loose[first]; ok {
		return ids
	}
	var ids []ID
	sub := hex.EncodeToString([]byte{first})
	for _, dir := range r.objects {
		entries, _ := readDir(filepath.Join(dir, sub))
		for _, e := range entries {
			if id, ok := parseID(sub + e.Name()); ok {
				ids = append(ids, id)
			}
		}
	}
	r.loose[first] = ids
	return ids
}

// Short returns an abbreviated ID with as many digits as git prints, which make it unique.
func (r *Repo) Short(id ID) string {
	digits := 7
	if r.listPacks() == nil {
		count := 0
		for _, p := range r.packs {
			if p.open(&r.pages) == nil {
				count += p.count()
			}
		}
		digits = max(digits, (bits.Len(uint(count))+1)/2)
	}
	same := func(other ID) int { // number of equal digits at the beginning
		for i := range id {
			if x := id[i] ^ other[i]; x != 0 {
				return 2*i + bits.LeadingZeros8(x)/4
			}
		}
		return 0 // the object itself
	}
	for _, p := range r.packs {
		if p.openErr != nil || p.idx == nil {
			continue
		}
		i, _, err := p.search(id)
		for _, at := range []int{i - 1, i, i + 1} {
			if err == nil && at >= 0 && at < p.count() {
				if other, e := p.id(at); e == nil {
					digits = max(digits, same(other)+1)
				}
			}
		}
	}
	for _, other := range r.looseIn(id[0]) {
		digits = max(digits, same(other)+1)
	}
	return id.String()[:min(digits, 40)]
}
