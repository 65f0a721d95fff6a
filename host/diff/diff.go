// Package diff says what people are told of what a call changes. A [Set] is the value;
// words.go and facts.go put it into words, and nobody reads these again.
package diff

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"slices"
	"strings"

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

// maxAlike is how many files that are gone, or new, are compared with each other.
const maxAlike = 10

// alike is [Moves] for texts that are not quite the same.
func alike(ctx context.Context, changes []tool.Change) []tool.Change {
	var gone, made []int
	for i, c := range changes {
		switch {
		case c.Kind == tool.Removed && isSmall(c.Before):
			gone = append(gone, i)
		case c.Kind == tool.Created && isSmall(c.After) && c.After.Twin == "":
			made = append(made, i)
		}
	}
	if len(gone) == 0 || len(made) == 0 || len(gone) > maxAlike || len(made) > maxAlike || ctx.Err() != nil {
		return changes
	}
	textOf := func(v *tool.Version) string {
		c, _, _ := read(v, maxText) // nothing, of what is no text
		return c.text
	}
	texts := map[int]string{}
	for _, i := range gone {
		texts[i] = textOf(changes[i].Before)
	}
	out := slices.Clone(changes)
	took := map[int]bool{}
	for _, i := range made {
		text, best, most := textOf(changes[i].After), -1, 0
		for _, j := range gone {
			if n := shared(text, texts[j]); !took[j] && n > most && 2*n > max(inLines(text), inLines(texts[j])) {
				best, most = j, n
			}
		}
		if best >= 0 {
			took[best] = true
			out[i] = renamed(changes[best], changes[i])
		}
	}
	return without(out, took)
}

func isSmall(v *tool.Version) bool { return regular(v) && v.Size > 0 && v.Size <= maxText }

// inLines is how many bytes the lines of a text have.
func inLines(text string) int { return len(text) - strings.Count(text, "\n") }

// shared is how many of these are in lines that are in both of two texts.
func shared(a, b string) (bytes int) {
	times := map[string]int{}
	for line := range strings.SplitSeq(a, "\n") {
		times[line]++
	}
	for line := range strings.SplitSeq(b, "\n") {
		if times[line] > 0 {
			times[line]--
			bytes += len(line)
		}
	}
	return bytes
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
