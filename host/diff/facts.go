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

	// list is some texts; where space is short, at most as many as most are shown.
	list struct {
		texts  []string
		most   int
		quoted bool
	}
	// more is some facts that are only counted where space is short.
	more []fact
)

// maxFiles limits the texts of most lists where space is short.
const maxFiles = 12

func names(texts ...string) list { return list{texts, maxFiles, false} }

func quotes(texts ...string) list { return list{texts, maxFiles, true} }

// loss says what a fact takes away from a repository. Lower values are shown first.
type loss int

const (
	unseen    loss = iota - 1 // something was not looked at: an answer holds for this call only
	objects                   // or stashes
	commits                   // some that no reference leads to any more
	reference                 // a reference that is gone
	noLoss
)

// fact returns a fact in words. all says that nothing may be left out; otherwise cut reports
// whether something is only counted.
func (s *Set) fact(f fact, all bool) (words string, cut bool) {
	short := func(text string) string {
		if text = s.concealed(text); !all {
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
			out.WriteString(id(s.concealed(string(p))))
		case ref:
			out.WriteString(refName(s.concealed(string(p))))
		case list:
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
		case more:
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

// id shortens a hash to 10 digits; any other text is only quoted and clipped.
func id(s string) string {
	if isHash(s) {
		return s[:10]
	}
	return word(clip(s))
}

// factOf returns the fact of a changed reference, with the commits that are lost with it.
func factOf(r git.Ref) fact {
	branch, onBranch := strings.CutPrefix(r.Name, branches)
	target, symbolic := strings.CutPrefix(r.After, "ref: "+branches)
	isHead := r.Name == "HEAD"
	gained := ""
	if r.Gained > 0 {
		gained = ", with " + count(r.Gained, "commit") + " from elsewhere"
	}
	f, none := fact{loss: noLoss}, ""
	say := func(parts ...any) { f.parts = append(f.parts, parts...) }
	switch {
	case r.After == "":
		f.loss = reference
		say(ref(r.Name), " removed")
	case isHead && symbolic:
		say("on branch ", names(target))
	case isHead && r.New == 0:
		say("HEAD at ", hash(r.After), ", on no branch")
	case (isHead || onBranch) && isHash(r.Before) && !r.Forward:
		say(names(branch), " moves from ", hash(r.Before), " to ", hash(r.After))
		if r.New > 0 {
			say(", with "+count(r.New, "new commit")+": ", quotes(r.Subject))
		}
		none = ", and no commit is lost"
	case isHead:
		say(count(r.New, "commit")+" on no branch: ", quotes(r.Subject), gained)
	case onBranch && r.New > 0:
		say(count(r.New, "commit")+" on ", names(branch), ": ", quotes(r.Subject), gained)
	case r.Before == "":
		say(ref(r.Name), " at ", hash(r.After))
	default:
		say(ref(r.Name), " moves from ", hash(r.Before), " to ", hash(r.After))
		if r.Forward {
			say(", which follows it" + gained)
		}
	}
	if n := len(r.Lost); n > 0 || r.LostMore {
		f.loss = commits
		switch {
		case n == 0:
			say(", and it is not known which commits are lost")
		case r.LostMore:
			say(", and these commits are lost and maybe more: ", quotes(r.Lost...))
		default:
			say(", and "+count(n, "commit")+" lost: ", quotes(r.Lost...))
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
		case len(r.Lost) > 0 || r.LostMore:
			return 0
		case strings.HasPrefix(r.Name, "refs/replace/"): // git shows other objects by it
			return 1
		case r.After == "":
			return 2
		case r.Before != "" && !r.Forward:
			return 3
		}
		return 4
	}
	return slices.SortedStableFunc(slices.Values(refs), func(a, b git.Ref) int { return order(a) - order(b) })
}
