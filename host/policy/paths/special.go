// Package paths judges paths of the host by their names alone. It opens no file.
//
// A special path is on the list of paths that need care, whatever a tool is allowed: it is
// closed, asked about, or secret ([Care]). [SpecialForChange], [SpecialForMove],
// [SpecialForRead] and [SpecialInside] return the entry of a path. A [Pattern] matches
// paths, for rules and lists of directories.
package paths

import (
	"fmt"
	"slices"
	"strings"
)

// Care is the restriction of a special path. It applies whatever a tool is allowed.
type Care string

// The kinds of care. For files that git itself writes, package policy is less strict with
// commands: it judges their content.
const (
	// Closed paths are changed by no guest. No answer and no rule permits a change; a person
	// makes it by hand.
	Closed Care = "closed"
	// Asked paths are changed only after a yes to exactly this change, which holds once. Only
	// a rule that names the file replaces the answer.
	Asked Care = "asked"
	// Secret files are read only after a yes for exactly this file, as for Asked, because the
	// content goes to the provider.
	Secret Care = "secret"
)

// Special is an entry of the list of special paths. It applies at any depth, also to a part of
// the path of a mount, and whether or not the path exists.
type Special struct {
	// Pattern is one or more names, separated by slashes. A name may begin or end with a "*",
	// which stands for any characters. "**" stands for any number of names, even none.
	Pattern string
	Care    Care
	What    string // kind of thing, with an article
	Why     string // danger, one clause
}

// SpecialForChange returns the entry that restricts making, changing, replacing or removing a
// path; false: none. Paths here are absolute, with slashes, and resolved: the target of a link
// and not the link. If several entries match, it returns one with the strictest care.
func SpecialForChange(name string) (Special, bool) {
	return find(name, reachExact|reachInside, Closed, Asked)
}

// SpecialForMove is like [SpecialForChange], for a directory that gets or loses this name. It
// also returns the entry of a path below the directory.
func SpecialForMove(name string) (Special, bool) {
	return find(name, reachExact|reachInside|reachAbove, Closed, Asked)
}

// SpecialForRead returns the entry that restricts reading the content of a file; false: none.
func SpecialForRead(name string) (Special, bool) {
	return find(name, reachExact|reachInside, Secret)
}

// Opened holds secret files that an answer or a rule has opened, by their paths as for
// [SpecialForRead].
type Opened []string

// SpecialForRead is like the function [SpecialForRead], but finds no entry for these files.
func (o Opened) SpecialForRead(name string) (Special, bool) {
	if slices.Contains(o, name) {
		return Special{}, false
	}
	return SpecialForRead(name)
}

// SpecialInside returns an entry because of which files below a directory may be secret that
// would not be secret under another path; false: none.
func SpecialInside(name string) (Special, bool) {
	return find(name, reachInside|reachAbove, Secret)
}

// PossibleRepositories returns the directories above a path that would make it a closed
// path if they were git repositories, that is, held a file HEAD. A repository need not be
// called .git: it can be bare, belong to a submodule or be reached through a link.
//
// moves is set for a directory that gets or loses this name.
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

// RepositorySpecial is the entry for a path in a repository of [PossibleRepositories].
var RepositorySpecial = Special{"HEAD/..", Closed, "a part of a git repository", gitRuns}

// HomeBin is the entry for the directory bin of a home directory anywhere.
var HomeBin = Special{"bin/*", Asked, foundByName, shellRuns}

// ClosedHint is the hint for a call that would change a closed path.
const ClosedHint = "no tool changes it, and no rule allows one to; a person can by hand"

// RefusalText returns the message for a call that was refused because of a special path, with
// the ways to go on.
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

// reach is the relation of a path to a pattern, or a set of relations. 0: none.
type reach int

const (
	reachAbove  reach = 1 << iota // the path is a directory above a special path
	reachInside                   // the path is a directory whose whole content is special, or inside one
	reachExact                    // the path is special itself
)

// find returns an entry with one of these relations. It tries the cares in their order.
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

// originals replaces the names of backups by the original names, and reports whether there
// were any.
func originals(names []component) (any bool) {
	for i := range names {
		if c, backup := names[i].original(); backup {
			names[i], any = c, true
		}
	}
	return any
}

// findEntry returns an entry of this care with one of these relations, or nil.
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

// match returns the relation of a path to a pattern.
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

// join returns the absolute path of names, as they were given.
func join(names []component) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteByte('/')
		b.WriteString(n.given)
	}
	return b.String()
}
