// Package paths tells about a path of the host by its name alone: it opens
// nothing.
//
// A special path is one on the list of those that need care, whatever a tool is
// allowed: it is closed, asked about, or secret ([Care]). [SpecialForChange], [SpecialForMove], [SpecialForRead]
// and [SpecialInside] say by which entry of the list. A [Pattern] is what rules and lists
// of directories say about paths.
package paths

import (
	"fmt"
	"slices"
	"strings"
)

// Care says what nobody does with a special path without more than the usual
// answer, whatever a tool is allowed.
type Care string

// The cares.
const (
	// Closed paths are changed by no guest. No answer and no rule opens one: a
	// person changes it by hand.
	Closed Care = "closed"
	// Asked paths are changed after an answer to exactly this change, which
	// holds once. Of the rules only one that names the file answers.
	Asked Care = "asked"
	// Secret files are read after an answer for exactly this file, in the same
	// way: what a tool reads goes to the provider.
	Secret Care = "secret"
)

// Special is an entry of the list of paths that need care. A path is on it at
// any depth, also as a part of the name of a mount, and whether or not it
// exists.
type Special struct {
	// Pattern is names, separated by slashes. A name may begin or end with a
	// "*", which stands for any letters, and "**" is any number of names; at the
	// end it also stands for none.
	Pattern string
	Care    Care
	What    string // what it is, with an article
	Why     string // what could happen, in one clause
}

// SpecialForChange returns the entry by which a path cannot simply be made, changed,
// replaced or removed. Paths are absolute, with slashes, and are the names that
// the host has: what a link leads to and not the link. Where several entries
// speak of it, it is one of the most careful.
func SpecialForChange(name string) (Special, bool) {
	return find(name, reachExact|reachInside, Closed, Asked)
}

// SpecialForMove is Change for a directory that gets or loses this name: also where
// something below it would need care.
func SpecialForMove(name string) (Special, bool) {
	return find(name, reachExact|reachInside|reachAbove, Closed, Asked)
}

// SpecialForRead returns the entry by which the content of a file cannot simply be read.
func SpecialForRead(name string) (Special, bool) {
	return find(name, reachExact|reachInside, Secret)
}

// Opened are secret files that an answer has opened, by the names that the host
// has.
type Opened []string

// SpecialForRead is [SpecialForRead] but for these files.
func (o Opened) SpecialForRead(name string) (Special, bool) {
	if slices.Contains(o, name) {
		return Special{}, false
	}
	return SpecialForRead(name)
}

// SpecialInside is Read for a directory: something in it may be secret because it is in
// there, and would not be under another name.
func SpecialInside(name string) (Special, bool) {
	return find(name, reachInside|reachAbove, Secret)
}

// PossibleRepositories lists directories above a path, the mount's own name included,
// that would make it a closed one if git kept a repository in them, which is
// where they hold a file HEAD. A repository is not always called .git: it can be
// bare, of a submodule or behind a link.
//
// moves says that it is a directory that gets or loses this name.
func PossibleRepositories(name string, moves bool) []string {
	counts := reachExact | reachInside
	if moves {
		counts |= reachAbove
	}
	var room [16]component
	names := components(room[:0], name)
	var out []string
	for i := 1; i < len(names); i++ {
		holds := func(e *specialEntry) bool { return match(e.parts[1:], names[i:])&counts != 0 }
		if slices.ContainsFunc(specialIndex().repository, holds) {
			out = append(out, join(names[:i]))
		}
	}
	return out
}

// RepositorySpecial is the entry for what [PossibleRepositories] speaks of.
var RepositorySpecial = Special{"HEAD/..", Closed, "a part of a git repository", gitRuns}

// HomeBin is the entry for the directory bin of a home, wherever that is.
var HomeBin = Special{"bin/*", Asked, foundByName, shellRuns}

// ClosedHint is what can be done about a closed path.
const ClosedHint = "no tool changes it, and no rule allows one to; a person can by hand"

// RefusalText says what became of a call that met a special path, and what can be
// done.
func (s Special) RefusalText(host string) string {
	is := fmt.Sprintf("%q is %s: %s", host, s.What, s.Why)
	switch s.Care {
	case Closed:
		return is + "; " + ClosedHint
	case Asked:
		return is + "; only a call whose changes can be shown before they are made changes it"
	}
	return fmt.Sprintf("%q looks like a secret, %s: %s; it is read after a yes for this file, by a call that names it, such as file_read", host, s.What, s.Why)
}

// reach says how a path stands to a pattern; zero is not at all. As a set, it
// says which of that counts.
type reach int

const (
	reachAbove  reach = 1 << iota // it is on the way to something special
	reachInside                   // it is a directory in which everything is special, or in one
	reachExact                    // it is special itself
)

// find returns an entry with the first of these cares that has one.
func find(name string, counts reach, cares ...Care) (Special, bool) {
	var room [16]component
	names := components(room[:0], name)
	for _, care := range cares {
		if e := findEntry(names, counts, care); e != nil {
			return e.Special, true
		}
		if care == Secret && originals(names) {
			if e := findEntry(names, counts, care); e != nil {
				return e.Special, true
			}
		}
	}
	return Special{}, false
}

// originals makes the names that look like those of backups what they are
// backups of, and reports whether there are any.
func originals(names []component) (any bool) {
	for i := range names {
		if c, backup := names[i].original(); backup {
			names[i], any = c, true
		}
	}
	return any
}

func findEntry(names []component, counts reach, care Care) *specialEntry {
	if care == Secret && len(names) > 0 && names[len(names)-1].isHarmless() {
		return nil
	}
	for i := range names {
		for _, e := range names[i].entries(i == len(names)-1) {
			if e.Care == care && match(e.parts, names[i:])&counts != 0 {
				return e
			}
		}
	}
	return nil
}

// match follows a pattern along names.
func match(parts []part, names []component) reach {
	for ; len(parts) > 0; parts, names = parts[1:], names[1:] {
		switch {
		case parts[0].text == anyNames && len(parts) == 1:
			return reachInside
		case parts[0].text == anyNames:
			best := reach(0)
			for i := range len(names) + 1 {
				best = max(best, match(parts[1:], names[i:]))
			}
			return best
		case len(names) == 0:
			return reachAbove
		case !names[0].is(parts[0]):
			return 0
		}
	}
	if len(names) > 0 {
		return 0
	}
	return reachExact
}

// join makes an absolute path of names, as they were given.
func join(names []component) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteByte('/')
		b.WriteString(n.given)
	}
	return b.String()
}
