// Package diff says what people are told of what a call changes. A [Set] is the value;
// words.go and git_words.go are where it is put into words, and nobody reads these again.
package diff

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"slices"

	"github.com/stockade-dev/stockade/host/tool"
)

// maxText is how many bytes a file has at most that is compared line by line for the log,
// or to find what was moved.
const maxText = 128 << 10

// contextFor is how many lines stand around each difference.
const contextFor = 3

// What is looked at to find what was moved.
const (
	maxMoved  = 16 << 20 // bytes of a file
	maxMovers = 500      // files that are gone, and new ones
	maxHashed = 64 << 20 // bytes of all
)

// take reports whether n is left, and takes it.
func take(left *int64, n int64) bool {
	if n > *left {
		return false
	}
	*left -= n
	return true
}

// Moves makes one change of a file that is gone and a new one of the same content, or one
// of which more than a half are the same lines. Few files are compared, and small ones: the
// others stay two changes.
func Moves(ctx context.Context, changes []tool.Change) []tool.Change {
	gone := map[int64][]int{} // by size
	movers := 0
	movable := func(v *tool.Version) bool { return regular(v) && v.Size > 0 && v.Size <= maxMoved }
	for i, c := range changes {
		if movers < maxMovers && c.Kind == tool.Removed && movable(c.Before) {
			gone[c.Before.Size] = append(gone[c.Before.Size], i)
			movers++
		}
	}
	out := slices.Clone(changes)
	took := map[int]bool{}
	by := map[[sha256.Size]byte][]int{} // those gone that were hashed: each once
	left := int64(maxHashed)
	hash := func(v *tool.Version) (sum [sha256.Size]byte, ok bool) {
		if ctx.Err() != nil || !take(&left, v.Size) {
			return sum, false
		}
		sum, err := v.SHA256()
		return sum, err == nil
	}
	looked := 0
	for i, c := range changes {
		if c.Kind != tool.Created || !movable(c.After) || c.After.Twin != "" || gone[c.After.Size] == nil {
			continue
		}
		if looked++; looked > maxMovers {
			break
		}
		for _, j := range gone[c.After.Size] {
			if sum, ok := hash(changes[j].Before); ok {
				by[sum] = append(by[sum], j)
			}
		}
		gone[c.After.Size] = []int{}
		after, ok := hash(c.After)
		if j := by[after]; ok && len(j) > 0 {
			by[after], took[j[0]] = j[1:], true
			out[i] = renamed(changes[j[0]], c)
		}
	}
	return alike(ctx, without(out, took))
}

// renamed is what is gone in one change and new in another one as a change of its name.
func renamed(gone, made tool.Change) tool.Change {
	return tool.Change{Path: made.Path, From: gone.Path, Kind: tool.Renamed, Before: gone.Before, After: made.After}
}

// without leaves out the changes at some places, in place.
func without(changes []tool.Change, places map[int]bool) []tool.Change {
	kept := changes[:0]
	for i, c := range changes {
		if !places[i] {
			kept = append(kept, c)
		}
	}
	return kept
}

func regular(v *tool.Version) bool { return v != nil && v.Mode.IsRegular() }

// bitsForOthers are those of a mode by which anybody may write, or something is executed as
// somebody else.
func bitsForOthers(mode fs.FileMode) fs.FileMode {
	return mode & (0o002 | fs.ModeSetuid | fs.ModeSetgid)
}

func forOthers(v *tool.Version) bool { return bitsForOthers(v.Mode) != 0 }
