package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// operations are what git goes on with when it is told to, by the directory that it has
// for each.
var operations = map[string]string{
	"rebase-merge": "a rebase", "rebase-apply": "a rebase or a series of patches", "sequencer": "a series of picks or reverts",
}

// redacted is the fact without secrets, which hide takes out of a text.
func (f Fact) redacted(hide func(string) string) Fact {
	if hide == nil {
		return f
	}
	f.Files, f.Steps = slices.Clone(f.Files), slices.Clone(f.Steps)
	for _, text := range []*string{&f.Name, &f.From, &f.To, &f.Subject} {
		*text = hide(*text)
	}
	for _, texts := range [][]string{f.Files, f.Steps} {
		for i := range texts {
			texts[i] = hide(texts[i])
		}
	}
	return f
}

// words are what a person reads of a fact.
func (f Fact) words() string {
	rewritten := func() string {
		follows := "which does not follow it"
		if f.Guess {
			follows += " as far as can be told"
		}
		name := word(f.Name)
		if f.Name == "" {
			name = "HEAD"
		}
		return fmt.Sprintf("%s moves from %s to %s, %s: %q%s", name, id(f.From), id(f.To), follows, clip(f.Subject), f.unstagedWords())
	}
	switch f.Kind {
	case FactNew:
		return "a new repository"
	case FactOnBranch:
		return "on branch " + word(clip(f.Name))
	case FactDetached:
		return "HEAD at " + id(f.To) + ", on no branch"
	case FactCommits:
		on := "no branch"
		if f.Name != "" {
			on = word(f.Name)
		}
		return fmt.Sprintf("%s on %s: %q%s", count(f.Count, "commit"), on, clip(f.Subject), f.unstagedWords())
	case FactRewritten:
		return rewritten()
	case FactStash:
		return fmt.Sprintf("%s on the stash: %q", count(f.Count, "commit"), clip(f.Subject))
	case FactRef:
		if f.From == "" {
			return refWords(f.Name) + " at " + id(f.To)
		}
		return refWords(f.Name) + " moves from " + id(f.From) + " to " + id(f.To)
	case FactRefGone:
		return refWords(f.Name) + " removed"
	case FactIndex:
		if len(f.Files) == 0 {
			return "index"
		}
		return "index of " + count(len(f.Files)+f.More, "file") + " (" + f.list() + ")"
	case FactStopped:
		return operations[f.Name] + " " + f.stepWords()
	case FactEnded:
		return operations[f.Name] + " has ended"
	case FactObjects:
		return count(f.Count, "new object")
	case FactLost:
		return count(f.Count, "object") + " removed"
	}
	return count(f.Count, "change") + " of its own"
}

// unstagedWords name the files of a commit that the index has not.
func (f Fact) unstagedWords() string {
	switch {
	case len(f.Files) > 0:
		return " with files that are not in the index: " + f.list()
	case f.Unseen:
		return " with files that cannot be compared with the index"
	}
	return ""
}

// stepWords say how an operation would go on.
func (f Fact) stepWords() string {
	switch {
	case f.Unread:
		return "whose next steps cannot be read here"
	case len(f.Steps) == 0:
		return "that has stopped in its last step"
	}
	var steps []string
	for _, step := range f.Steps {
		steps = append(steps, strconv.Quote(step))
	}
	if f.More > 0 {
		steps = append(steps, fmt.Sprintf("%d more", f.More))
	}
	return "that has stopped, and would go on with " + strings.Join(steps, ", ")
}

// refWords name a reference.
func refWords(name string) string {
	if branch, ok := strings.CutPrefix(name, branches); ok {
		return "branch " + word(branch)
	}
	if tag, ok := strings.CutPrefix(name, "refs/tags/"); ok {
		return "tag " + word(tag)
	}
	if name == theStash {
		return "the stash"
	}
	return word(strings.TrimPrefix(name, "refs/"))
}

// id is a hash in short, or what is in its place.
func id(s string) string {
	if isHash(s) {
		return s[:10]
	}
	return word(clip(s))
}

// list names the files of a fact.
func (f Fact) list() string {
	var out []string
	for _, name := range f.Files[:min(len(f.Files), maxStaged)] {
		out = append(out, word(clip(name)))
	}
	if f.More != 0 || f.Unseen || len(f.Files) > len(out) {
		out = append(out, "...")
	}
	return strings.Join(out, ", ")
}
