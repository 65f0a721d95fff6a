package diff

import (
	"context"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/tool"
)

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
