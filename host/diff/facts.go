package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/tool"
)

// fact is one statement about a repository. Its parts are our own words, as plain strings, and
// texts by others, in one of the types below, which are formatted when they are shown.
type fact struct {
	loss  loss
	parts []any
}

type (
	hash string // hash of an object, or the text of a reference that has no hash
	ref  string // full name of a reference

	// textList is a list of texts. If space is short, those after the first limit are counted.
	textList struct {
		texts  []string
		limit  int
		quoted bool
	}
	// moreFacts is a list of facts that are only counted if space is short.
	moreFacts []fact
)

// maxFiles limits the texts of most lists if space is short; the others are counted.
const maxFiles = 12

// nameList returns a list of names, and quoteList of quoted texts.
func nameList(texts ...string) textList { return textList{texts, maxFiles, false} }

func quoteList(texts ...string) textList { return textList{texts, maxFiles, true} }

// loss is the kind of loss that a fact reports. Lower values are shown first.
type loss int

const (
	lossUnknown   loss = iota - 1 // something was not examined or named: an answer holds for this call only
	lossObjects                   // objects or stashes are lost
	lossCommits                   // no reference leads to some commits any more
	lossReference                 // a reference is removed
	lossNone                      // none of these is lost
)

// fact returns a fact in words. If all is set, everything is shown; otherwise cut reports
// whether something is only counted.
func (s *Set) fact(f fact, all bool) (words string, cut bool) {
	short := func(text string) string {
		if text = s.redact(text); !all {
			text = tool.Clip(text, maxWord)
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
			limit := len(p.texts)
			if !all {
				limit = min(limit, p.limit)
			}
			var shown []string
			for _, text := range p.texts[:limit] {
				if p.quoted {
					shown = append(shown, strconv.Quote(short(text)))
				} else {
					shown = append(shown, word(short(text)))
				}
			}
			if more := len(p.texts) - limit; more > 0 {
				shown, cut = append(shown, fmt.Sprintf("%d more", more)), true
			}
			out.WriteString(strings.Join(shown, ", "))
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

// id shortens a hash to 10 digits. It clips another text, and quotes it where word does.
func id(s string) string {
	if isHash(s) {
		return s[:10]
	}
	return word(tool.Clip(s, maxWord))
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

// ordered returns references in the order of display: first those that lose commits, then
// replacements of objects, removals, moves that are not forward, and the rest.
func ordered(refs []git.Ref) []git.Ref {
	order := func(r git.Ref) int {
		switch {
		case len(r.LostCommits) > 0 || r.MayHaveLostMore:
			return 0
		case strings.HasPrefix(r.Name, "refs/replace/"): // it makes git show other objects
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
