package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/guests/git/repo"
	"github.com/stockade-dev/stockade/sdk/go/lines"
)

const (
	fullScore    = 60_000            // score of equal files
	minScore     = fullScore / 2     // least score of a rename
	minNameScore = fullScore * 3 / 4 // least score in the first pass, of files whose base name no others have

	// Limits and costs of the search for renames with changed content.
	maxRenamePairs      = 40_000    // pairs of a removed and an added file; with more, there is no search
	maxRenameFile       = 512 << 10 // bytes of a file; a larger one is not compared
	maxRenameBytes      = 24 << 20  // bytes of all files; further files are not compared
	renameBytesPerUnit  = 30        // bytes read per unit of work
	renamePiecesPerUnit = 8         // pieces compared per unit of work
	maxRenameWork       = 2_000_000 // units of work for comparing; further pairs are not compared
)

// findRenames turns pairs of a removed and an added file into renames, as git does: if half of the
// larger content is in both. It returns the changes sorted by path.
func (c *call) findRenames(changes []change) ([]change, error) {
	var gone, made []int
	for i := range changes {
		switch changes[i].statusLetter() {
		case 'D':
			gone = append(gone, i)
		case 'A':
			made = append(made, i)
		}
	}
	if len(gone) == 0 || len(made) == 0 {
		return changes, nil
	}
	r := renames{call: c, changes: changes, used: map[int]bool{}}
	r.exact(gone, made)
	gone, made = r.unpaired(gone), r.unpaired(made)
	if len(gone) > 0 && len(made) > 0 {
		if len(gone)*len(made) > maxRenamePairs {
			c.note("so many files were removed and added that renames with changes were not looked for")
		} else if err := r.inexact(gone, made); err != nil {
			return nil, err
		}
	}
	var out []change
	for i := range changes {
		if !r.used[i] || changes[i].to.exists() {
			out = append(out, changes[i])
		}
	}
	sortChanges(out)
	return out, nil
}

// renames is the state of a search for renames. An int stands for a file, by its position in
// changes; gone are removed files, and made are added ones.
type renames struct {
	*call
	changes []change
	used    map[int]bool   // files that are part of a pair
	sums    map[int]*spans // pieces of the files that were read; nil entry: the file is not compared
	read    int            // bytes read so far
	work    int            // units of work for comparing so far
}

func (r *renames) unpaired(of []int) (out []int) {
	for _, i := range of {
		if !r.used[i] {
			out = append(out, i)
		}
	}
	return out
}

func (r *renames) pair(from, to, score int) {
	r.used[from], r.used[to] = true, true
	r.changes[to].from = r.changes[from].from
	r.changes[to].score = score * 100 / fullScore
}

func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// exact pairs files with equal IDs, which those of the worktree lack, preferably with the same
// base name.
func (r *renames) exact(gone, made []int) {
	byID := map[repo.ID][]int{}
	for _, i := range gone {
		if id := r.changes[i].from.id; !r.changes[i].from.inWorktree {
			byID[id] = append(byID[id], i)
		}
	}
	for _, to := range made {
		f := &r.changes[to].to
		if f.inWorktree {
			continue
		}
		best, bestScore := -1, -1
		for _, from := range byID[f.id] {
			old := &r.changes[from].from
			if r.used[from] || repo.Type(old.mode) != repo.Type(f.mode) {
				continue
			}
			score := 0
			if base(old.path) == base(f.path) {
				score = 1
			}
			if score > bestScore {
				best, bestScore = from, score
			}
		}
		if best >= 0 {
			r.pair(best, to, fullScore)
		}
	}
}

// inexact pairs files with similar contents: first those with a base name that no other removed or
// added file has, then the others, the best score first.
func (r *renames) inexact(gone, made []int) error {
	r.sums = map[int]*spans{}
	count := func(of []int, path func(i int) string) map[string]int {
		only := map[string]int{}
		for _, i := range of {
			name := base(path(i))
			if _, twice := only[name]; twice {
				only[name] = -1
			} else {
				only[name] = i
			}
		}
		return only
	}
	goneNames := count(gone, func(i int) string { return r.changes[i].from.path })
	madeNames := count(made, func(i int) string { return r.changes[i].to.path })
	for _, from := range gone {
		name := base(r.changes[from].from.path)
		to, ok := madeNames[name]
		if !ok || to < 0 || goneNames[name] != from {
			continue
		}
		score, err := r.score(from, to, minNameScore)
		if err != nil {
			return err
		}
		if score >= minNameScore {
			r.pair(from, to, score)
		}
	}
	gone, made = r.unpaired(gone), r.unpaired(made)
	type pair struct{ from, to, score, name int }
	var pairs []pair
	for _, to := range made {
		for _, from := range gone {
			score, err := r.score(from, to, minScore)
			if err != nil {
				return err
			}
			if score < minScore {
				continue
			}
			p := pair{from: from, to: to, score: score}
			if base(r.changes[from].from.path) == base(r.changes[to].to.path) {
				p.name = 1
			}
			pairs = append(pairs, p)
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.name, a.name))
	})
	for _, p := range pairs {
		if !r.used[p.from] && !r.used[p.to] {
			r.pair(p.from, p.to, p.score)
		}
	}
	return nil
}

// spans counts the bytes in the pieces of a file. A piece is a line, or 64 bytes of a longer
// one.
type spans struct {
	size  int            // bytes of the file
	bytes map[uint32]int // number of bytes in all pieces with the same hash, by the hash
}

// score returns the share of the larger of two files that the smaller has, too, up to fullScore.
// If it would be below least, or if a file is not compared, the result may be 0.
func (r *renames) score(from, to, least int) (int, error) {
	old, now := &r.changes[from].from, &r.changes[to].to
	if repo.Type(old.mode) != repo.Type(repo.ModeFile) || repo.Type(now.mode) != repo.Type(repo.ModeFile) {
		return 0, nil
	}
	a, err := r.spansOf(from, *old)
	if err != nil || a == nil {
		return 0, err
	}
	b, err := r.spansOf(to, *now)
	if err != nil || b == nil {
		return 0, err
	}
	large, small := max(a.size, b.size), min(a.size, b.size)
	if small == 0 || large*(fullScore-least) < (large-small)*fullScore {
		return 0, nil
	}
	cost := len(a.bytes)/renamePiecesPerUnit + 1
	r.Spend(cost)
	if r.work += cost; r.work > maxRenameWork {
		r.note("so many files were removed and added that not all renames with changes were found")
		return 0, nil
	}
	both := 0
	for hash, n := range a.bytes {
		both += min(n, b.bytes[hash])
	}
	return int(int64(both) * fullScore / int64(large)), nil
}

// spansOf returns the spans of f, and remembers them under i, the position of its change in
// r.changes. Nil: f is not compared, because it looks like a secret, is too large, or too much
// was read already.
func (r *renames) spansOf(i int, f file) (*spans, error) {
	if s, ok := r.sums[i]; ok {
		return s, nil
	}
	if r.read > maxRenameBytes {
		return nil, nil
	}
	c, err := r.content(f)
	if err != nil {
		return nil, err
	}
	r.read += len(c.data)
	r.Spend(len(c.data) / renameBytesPerUnit)
	if c.notCompared != "" || len(c.data) > maxRenameFile || r.read > maxRenameBytes {
		r.sums[i] = nil
		return nil, nil
	}
	s := &spans{size: len(c.data), bytes: map[uint32]int{}}
	text := !lines.IsBinary(c.data)
	var x, y uint32
	n := 0
	const longest, buckets = 64, 107927
	for at, ch := range c.data {
		if text && ch == '\r' && at+1 < len(c.data) && c.data[at+1] == '\n' {
			continue
		}
		was := x
		x = x<<7 ^ y>>25
		y = y<<7 ^ was>>25
		x += uint32(ch)
		if n++; n < longest && ch != '\n' {
			continue
		}
		s.bytes[(x+y*0x61)%buckets] += n
		n, x, y = 0, 0, 0
	}
	if n > 0 {
		s.bytes[(x+y*0x61)%buckets] += n
	}
	r.sums[i] = s
	return s, nil
}
