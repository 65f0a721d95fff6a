package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/git"
)

// fact is one thing that git has done. Its parts are our own words, as plain strings, and texts
// that others have written, in one of the types below, which are formatted when they are shown.
type fact struct {
	loss  loss
	parts []any
}

type (
	hash string // of an object, or the text that a reference has in place of one
	ref  string // the name of a reference, in full

	// textList is some texts; where space is short, at most as many as most are shown.
	textList struct {
		texts  []string
		most   int
		quoted bool
	}
	// moreFacts is some facts that are only counted where space is short.
	moreFacts []fact
)

// maxFiles limits the texts of most lists where space is short.
const maxFiles = 12

func nameList(texts ...string) textList { return textList{texts, maxFiles, false} }

func quoteList(texts ...string) textList { return textList{texts, maxFiles, true} }

// loss says what a fact takes away from a repository. Lower values are shown first.
type loss int

const (
	lossUnknown   loss = iota - 1 // something was not looked at: an answer holds for this call only
	lossObjects                   // or stashes
	lossCommits                   // some that no reference leads to any more
	lossReference                 // a reference that is gone
	lossNone
)

// fact returns a fact in words. all says that nothing may be left out; otherwise cut reports
// whether something is only counted.
func (s *Set) fact(f fact, all bool) (words string, cut bool) {
	short := func(text string) string {
		if text = s.redact(text); !all {
			text = clip(text)
		}
		return text
	}
	var out strings.Builder
	for _, part := range f.parts {
		switch p := part.(type) {
		case string:
			out.WriteString(p)
		case hash:
			out.WriteString(id(s.redact(string(p))))
		case ref:
			out.WriteString(refName(s.redact(string(p))))
		case textList:
			most := len(p.texts)
			if !all {
				most = min(most, p.most)
			}
			var told []string
			for _, text := range p.texts[:most] {
				if p.quoted {
					told = append(told, strconv.Quote(short(text)))
				} else {
					told = append(told, word(short(text)))
				}
			}
			if beside := len(p.texts) - most; beside > 0 {
				told, cut = append(told, fmt.Sprintf("%d more", beside)), true
			}
			out.WriteString(strings.Join(told, ", "))
		case moreFacts:
			if cut = !all; cut {
				out.WriteString(count(len(p), "more reference") + " moved or removed")
				break
			}
			for i, f := range p {
				if i > 0 {
					out.WriteString("; ")
				}
				words, _ := s.fact(f, all)
				out.WriteString(words)
			}
		}
	}
	return out.String(), cut
}

// refName returns the name of a reference for people.
func refName(name string) string {
	if branch, ok := strings.CutPrefix(name, branchPrefix); ok {
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

// id shortens a hash to 10 digits; any other text is only quoted and clipped.
func id(s string) string {
	if isHash(s) {
		return s[:10]
	}
	return word(clip(s))
}

// factOf returns the fact of a changed reference, with the commits that are lost with it.
func factOf(r git.Ref) fact {
	branch, onBranch := strings.CutPrefix(r.Name, branchPrefix)
	target, symbolic := strings.CutPrefix(r.After, "ref: "+branchPrefix)
	isHead := r.Name == "HEAD"
	gained := ""
	if r.GainedCommits > 0 {
		gained = ", with " + count(r.GainedCommits, "commit") + " from elsewhere"
	}
	f, none := fact{loss: lossNone}, ""
	say := func(parts ...any) { f.parts = append(f.parts, parts...) }
	switch {
	case r.After == "":
		f.loss = lossReference
		say(ref(r.Name), " removed")
	case isHead && symbolic:
		say("on branch ", nameList(target))
	case isHead && r.NewCommits == 0:
		say("HEAD at ", hash(r.After), ", on no branch")
	case (isHead || onBranch) && isHash(r.Before) && !r.FastForward:
		say(nameList(branch), " moves from ", hash(r.Before), " to ", hash(r.After))
		if r.NewCommits > 0 {
			say(", with "+count(r.NewCommits, "new commit")+": ", quoteList(r.Subject))
		}
		none = ", and no commit is lost"
	case isHead:
		say(count(r.NewCommits, "commit")+" on no branch: ", quoteList(r.Subject), gained)
	case onBranch && r.NewCommits > 0:
		say(count(r.NewCommits, "commit")+" on ", nameList(branch), ": ", quoteList(r.Subject), gained)
	case r.Before == "":
		say(ref(r.Name), " at ", hash(r.After))
	default:
		say(ref(r.Name), " moves from ", hash(r.Before), " to ", hash(r.After))
		if r.FastForward {
			say(", which follows it" + gained)
		}
	}
	if n := len(r.LostCommits); n > 0 || r.MayHaveLostMore {
		f.loss = lossCommits
		switch {
		case n == 0:
			say(", and it is not known which commits are lost")
		case r.MayHaveLostMore:
			say(", and these commits are lost and maybe more: ", quoteList(r.LostCommits...))
		default:
			say(", and "+count(n, "commit")+" lost: ", quoteList(r.LostCommits...))
		}
	} else {
		say(none)
	}
	return f
}

// ordered sorts references for display: first those that lose commits, then replacements of
// objects, removals, moves that are not forward, and the rest.
func ordered(refs []git.Ref) []git.Ref {
	order := func(r git.Ref) int {
		switch {
		case len(r.LostCommits) > 0 || r.MayHaveLostMore:
			return 0
		case strings.HasPrefix(r.Name, "refs/replace/"): // git shows other objects by it
			return 1
		case r.After == "":
			return 2
		case r.Before != "" && !r.FastForward:
			return 3
		}
		return 4
	}
	return slices.SortedStableFunc(slices.Values(refs), func(a, b git.Ref) int { return order(a) - order(b) })
}
