// Package diff describes the changes of a call to people. A [Set] holds the changes as data,
// grouped into entries. words.go and facts.go put them into words, which no code reads. The care
// of a change is the reason for which a person must not overlook it. Facts are statements
// about repositories of git, in place of the changes of files in .git.
package diff

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/tool"
)

// maxText limits the bytes of a file that is compared by lines, for the log or for renames.
const maxText = 128 << 10

const contextLines = 3

// Limits of the search for renames. Files beyond a limit are no renames.
const (
	maxMoved  = 16 << 20 // bytes of one file; larger ones are not compared
	maxMovers = 500      // number of removed files, and as many new ones
	maxHashed = 64 << 20 // bytes of all files that are hashed
)

// spend takes n from left and returns true, or takes nothing if less is left.
func spend(left *int64, n int64) bool {
	if n > *left {
		return false
	}
	*left -= n
	return true
}

// DetectRenames replaces the removal of a file and the creation of another one by one rename
// if both have the same content. If few small ones remain, it also joins texts in which more
// than half of the bytes are in equal lines. Empty files, new hard links, and files beyond a
// limit stay two changes. It stops reading soon after the end of ctx.
func DetectRenames(ctx context.Context, changes []tool.Change) []tool.Change {
	gone := map[int64][]int{} // by size
	movers := 0
	movable := func(v *tool.Version) bool { return v.IsFile() && v.Size > 0 && v.Size <= maxMoved }
	for i, c := range changes {
		if movers < maxMovers && c.Kind == tool.Removed && movable(c.Before) {
			gone[c.Before.Size] = append(gone[c.Before.Size], i)
			movers++
		}
	}
	out := slices.Clone(changes)
	took := map[int]bool{}
	by := map[[sha256.Size]byte][]int{} // removed files by the hash of their content; each is hashed once
	left := int64(maxHashed)
	hash := func(v *tool.Version) (sum [sha256.Size]byte, ok bool) {
		if ctx.Err() != nil || !spend(&left, v.Size) {
			return sum, false
		}
		sum, err := v.SHA256()
		return sum, err == nil
	}
	looked := 0
	for i, c := range changes {
		if c.Kind != tool.Created || !movable(c.After) || c.After.HardLink != "" || gone[c.After.Size] == nil {
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
			out[i] = joinRename(changes[j[0]], c)
		}
	}
	return joinSimilar(ctx, removeAt(out, took))
}

// maxSimilar limits both the removed and the new files of joinSimilar; with more it joins none.
const maxSimilar = 10

// joinSimilar joins the removal and the creation of similar texts into renames, as
// [DetectRenames] does for equal contents.
func joinSimilar(ctx context.Context, changes []tool.Change) []tool.Change {
	var gone, made []int
	for i, c := range changes {
		switch {
		case c.Kind == tool.Removed && isSmall(c.Before):
			gone = append(gone, i)
		case c.Kind == tool.Created && isSmall(c.After) && c.After.HardLink == "":
			made = append(made, i)
		}
	}
	if len(gone) == 0 || len(made) == 0 || len(gone) > maxSimilar || len(made) > maxSimilar || ctx.Err() != nil {
		return changes
	}
	textOf := func(v *tool.Version) string {
		c, _, _ := read(v, maxText) // empty for a file that is not text
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
			if n := sharedBytes(text, texts[j]); !took[j] && n > most && 2*n > max(bytesInLines(text), bytesInLines(texts[j])) {
				best, most = j, n
			}
		}
		if best >= 0 {
			took[best] = true
			out[i] = joinRename(changes[best], changes[i])
		}
	}
	return removeAt(out, took)
}

// isSmall reports whether v is a regular file that is not empty and has at most maxText bytes.
func isSmall(v *tool.Version) bool { return v.IsFile() && v.Size > 0 && v.Size <= maxText }

func bytesInLines(text string) int { return len(text) - strings.Count(text, "\n") }

// sharedBytes counts the bytes of the lines that two texts have in common, without line ends.
func sharedBytes(a, b string) (bytes int) {
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

func joinRename(gone, made tool.Change) tool.Change {
	return tool.Change{Path: made.Path, From: gone.Path, Kind: tool.Renamed, Before: gone.Before, After: made.After}
}

// removeAt returns the changes without those at the indexes in places, in the same slice.
func removeAt(changes []tool.Change, places map[int]bool) []tool.Change {
	kept := changes[:0]
	for i, c := range changes {
		if !places[i] {
			kept = append(kept, c)
		}
	}
	return kept
}

// bitsForOthers returns the bits of a mode that let anybody write, or that make a file run as
// another user or group: the write bit for others, setuid and setgid.
func bitsForOthers(mode fs.FileMode) fs.FileMode {
	return mode & (0o002 | fs.ModeSetuid | fs.ModeSetgid)
}

// opensToOthers reports whether the mode of a version has any of bitsForOthers.
func opensToOthers(v *tool.Version) bool { return bitsForOthers(v.Mode) != 0 }
