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
	texts := map[int]lines{}
	for _, i := range gone {
		texts[i] = linesOf(changes[i].Before)
	}
	out := slices.Clone(changes)
	took := map[int]bool{}
	for _, i := range made {
		text, best, most := linesOf(changes[i].After), -1, 0
		for _, j := range gone {
			if n := text.shared(texts[j]); !took[j] && n > most && 2*n > max(text.bytes, texts[j].bytes) {
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

// lines are those of a text, and how often each is there.
type lines struct {
	times map[string]int
	bytes int
}

// linesOf is empty for what is no text.
func linesOf(v *tool.Version) lines {
	c, _, err := read(v, maxText)
	if err != nil {
		return lines{}
	}
	l := lines{times: map[string]int{}}
	for line := range strings.SplitSeq(c.text, "\n") {
		l.times[line]++
		l.bytes += len(line)
	}
	return l
}

// shared is how many bytes are in lines that are in both.
func (l lines) shared(other lines) (bytes int) {
	for line, n := range l.times {
		bytes += min(n, other.times[line]) * len(line)
	}
	return bytes
}
