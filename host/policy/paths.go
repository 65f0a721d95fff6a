package policy

import (
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

// Paths says what a call may do with special paths. The zero value is the whole
// list.
type Paths struct {
	readable []string
}

// Change returns the entry by which a path cannot simply be made, changed,
// replaced or removed. Paths are absolute, with slashes, and are the names that
// the host has: what a link leads to and not the link. Where several entries
// speak of it, it is one of the most careful.
func (p Paths) Change(name string) (Special, bool) {
	return find(name, on|inside, Closed, Asked)
}

// Move is Change for a directory that gets or loses this name: also where
// something below it would need care.
func (p Paths) Move(name string) (Special, bool) {
	return find(name, on|inside|leads, Closed, Asked)
}

// Read returns the entry by which the content of a file cannot simply be read.
func (p Paths) Read(name string) (Special, bool) {
	if len(p.readable) > 0 && slices.Contains(p.readable, name) {
		return Special{}, false
	}
	return find(name, on|inside, Secret)
}

// Hold is Read for a directory: something in it may be secret because it is in
// there, and would not be under another name.
func (p Paths) Hold(name string) (Special, bool) {
	return find(name, inside|leads, Secret)
}

// Repository lists directories above a path, the mount's own name included,
// that would make it a closed one if git kept a repository in them, which is
// where they hold a file HEAD. A repository is not always called .git: it can be
// bare, of a submodule or behind a link.
//
// moves says that it is a directory that gets or loses this name.
func (p Paths) Repository(name string, moves bool) []string {
	counts := on | inside
	if moves {
		counts |= leads
	}
	var room [16]component
	names := components(room[:0], name)
	var out []string
	for i := 1; i < len(names); i++ {
		holds := func(e *listed) bool { return match(e.parts[1:], names[i:])&counts != 0 }
		if slices.ContainsFunc(repository, holds) {
			out = append(out, join(names[:i]))
		}
	}
	return out
}

// RepositorySpecial is the entry for what [Paths.Repository] speaks of.
var RepositorySpecial = Special{"HEAD/..", Closed, "a part of a git repository", gitRuns}

// reach says how a path stands to a pattern; zero is not at all. As a set, it
// says which of that counts.
type reach int

const (
	leads  reach = 1 << iota // it is on the way to something special
	inside                   // it is a directory in which everything is special, or in one
	on                       // it is special itself
)

// find returns an entry with the first of these cares that has one.
func find(name string, counts reach, cares ...Care) (Special, bool) {
	var room [16]component
	names := components(room[:0], name)
	for _, care := range cares {
		if e := look(names, counts, care); e != nil {
			return e.Special, true
		}
		if care == Secret && originals(names) {
			if e := look(names, counts, care); e != nil {
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

func look(names []component, counts reach, care Care) *listed {
	if care == Secret && len(names) > 0 && names[len(names)-1].plain() {
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
			return inside
		case parts[0].text == anyNames:
			best := reach(0)
			for i := range len(names) + 1 {
				best = max(best, match(parts[1:], names[i:]))
			}
			return best
		case len(names) == 0:
			return leads
		case !names[0].is(parts[0]):
			return 0
		}
	}
	if len(names) > 0 {
		return 0
	}
	return on
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
