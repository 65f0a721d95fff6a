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
	if kind, name, ok := strings.Cut(f.In, "/"); ok {
		g := f
		g.In = ""
		return strings.TrimSuffix(kind, "s") + " " + word(clip(name)) + ": " + g.words()
	}
	if words, ok := f.refWords(); ok {
		return words
	}
	switch f.Kind {
	case FactNew:
		return "a new repository"
	case FactSame:
		return count(len(f.Files)+f.More, "file") + " as in the worktree (" + f.list() + ")"
	case FactEnds:
		return fmt.Sprintf("%d of these with LF where the worktree has CRLF", f.Count)
	case FactTaken:
		return count(len(f.Files)+f.More, "file") + " taken out that the worktree does not have (" + f.list() + ")"
	case FactStays:
		return count(len(f.Files)+f.More, "file") + " taken out, but not of the worktree (" + f.list() + ")"
	case FactFlags:
		return "git is told whether to look at " + count(len(f.Files)+f.More, "file") + " (" + f.list() + ")"
	case FactModule:
		return "submodule " + word(clip(f.Name)) + " at " + id(f.To)
	case FactOlder:
		return fmt.Sprintf("only the newest %d of the new commits were compared with the worktree", f.Count)
	case FactUnseen:
		if len(f.Files) > 0 {
			return "not all could be looked at: " + f.list()
		}
		return "not all of what commits and the index hold could be looked at"
	case FactStopped:
		return operations[f.Name] + " " + f.stepWords()
	case FactEnded:
		return operations[f.Name] + " has ended"
	case FactObjects:
		return count(f.Count, "new object")
	case FactDerived:
		return "without its commit-graph or multi-pack-index, which git makes anew"
	case FactLost:
		return count(f.Count, "object") + " lost"
	}
	return count(f.Count, "change") + " of its own"
}

// refWords are those of a fact about references and commits.
func (f Fact) refWords() (words string, ok bool) {
	name := refName(f.Name)
	switch f.Kind {
	case FactOnBranch:
		return "on branch " + word(clip(f.Name)), true
	case FactDetached:
		return "HEAD at " + id(f.To) + ", on no branch" + f.lost(""), true
	case FactCommits:
		on := "no branch"
		if f.Name != "HEAD" {
			on = word(clip(f.Name))
		}
		return fmt.Sprintf("%s on %s: %q", count(f.Count, "commit"), on, clip(f.Subject)) + f.gained(), true
	case FactRewritten:
		words = fmt.Sprintf("%s moves from %s to %s", word(clip(f.Name)), id(f.From), id(f.To))
		if f.Count > 0 {
			words += fmt.Sprintf(", with %s: %q", count(f.Count, "new commit"), clip(f.Subject))
		}
		return words + f.lost(", and no commit is lost"), true
	case FactStashed:
		return "stashed " + f.steps(), true
	case FactDropped:
		return "stashes dropped: " + f.steps(), true
	case FactRefs:
		return count(f.Count, "more reference") + " moved or removed", true
	case FactRef:
		if f.From == "" {
			return name + " at " + id(f.To), true
		}
		words = name + " moves from " + id(f.From) + " to " + id(f.To)
		if f.Forward {
			return words + ", which follows it" + f.gained(), true
		}
		return words + f.lost(""), true
	case FactRefGone:
		return name + " removed" + f.lost(""), true
	case FactLog:
		return fmt.Sprintf("the log of %s loses %s", refName(f.Name), count(f.Count, "line")), true
	case FactLogGone:
		return fmt.Sprintf("the log of %s removed, with %s", refName(f.Name), count(f.Count, "line")), true
	}
	return "", false
}

// gained counts the commits that others led to before.
func (f Fact) gained() string {
	if f.Gained == 0 {
		return ""
	}
	return ", with " + count(f.Gained, "commit") + " from elsewhere"
}

// lost names the commits that no reference leads to any more.
func (f Fact) lost(none string) string {
	switch n := len(f.Steps) + f.More; {
	case n == 0 && f.Guess:
		return ", and it is not known which commits are lost"
	case n == 0:
		return none
	case f.Guess:
		return ", and these commits are lost and maybe more: " + f.steps()
	default:
		return ", and " + count(n, "commit") + " lost: " + f.steps()
	}
}

// steps are those of a fact, each in quotes.
func (f Fact) steps() string {
	var steps []string
	for _, step := range f.Steps {
		steps = append(steps, strconv.Quote(clip(step)))
	}
	if f.More > 0 {
		steps = append(steps, fmt.Sprintf("%d more", f.More))
	}
	return strings.Join(steps, ", ")
}

// stepWords say how an operation would go on.
func (f Fact) stepWords() string {
	switch {
	case f.Unread:
		return "whose next steps cannot be read here"
	case len(f.Steps) == 0:
		return "that has stopped in its last step"
	}
	return "that has stopped, and would go on with " + f.steps()
}

// refName names a reference.
func refName(name string) string {
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
	for _, name := range f.Files {
		out = append(out, word(clip(name)))
	}
	if f.More > 0 {
		out = append(out, fmt.Sprintf("%d more", f.More))
	}
	return strings.Join(out, ", ")
}
