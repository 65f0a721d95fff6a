package paths

import "strings"

// Dir is a directory for code that walks a tree. It keeps the state of matching its path
// against the list of special paths, so that a lookup costs no more than the last name. The
// results are the same as those of [SpecialForRead], [SpecialForChange] and [SpecialForMove]
// for the whole path. Its methods are safe for concurrent use.
type Dir struct {
	given     trail // rests after the names of the path
	originals trail // rests after the same names, but original names instead of those of backups
	backup    bool  // set if a name is that of a backup; otherwise both trails are the same
}

// trail holds the rests of all patterns that have begun to match. A pattern has one rest for
// each place where it can continue.
type trail []rest

// rest is the part of a pattern that is still to be matched.
type rest struct {
	*specialEntry
	parts []part
}

// Protection holds the entries of the list that apply to a name in a directory.
type Protection struct {
	// ReadOnly is the entry because of which no command may change the name; nil: none. Its
	// care is Closed, or Asked, since nobody can ask about each change while a command runs.
	// The entry for HEAD does not count, because git itself changes HEAD.
	ReadOnly *Special
	Secret   *Special // an entry of the care Secret; nil: none
	// Hidden is like Secret, but without the entries for files that git must read, its
	// configuration.
	Hidden *Special
	// ReadOnlyAll and SecretAll are set for a directory if the entry applies to its whole
	// content, too.
	ReadOnlyAll, SecretAll bool
}

// DirOf returns the Dir of an absolute path with slashes.
func DirOf(name string) Dir {
	var d Dir
	for _, c := range components(nil, name) {
		d = d.enter(c)
	}
	return d
}

// Enter returns the Dir of a directory in d.
func (d Dir) Enter(name string) Dir { return d.enter(componentOf(name)) }

// Repository returns the directory as if it were a git repository, whatever its name: see
// [PossibleRepositories].
func (d Dir) Repository() Dir {
	d.given = d.given[:len(d.given):len(d.given)]
	for _, e := range specialIndex().repository {
		d.given = append(d.given, rest{e, e.parts[1:]})
	}
	if !d.backup {
		d.originals = d.given
	}
	return d
}

// LeadsToReadOnly reports whether the name of the directory can make a path below it
// read-only.
func (d Dir) LeadsToReadOnly() bool {
	for _, r := range d.given {
		if r.Care != Secret && match(r.parts, nil) == reachAbove {
			return true
		}
	}
	return false
}

func (d Dir) enter(c component) Dir {
	out := Dir{given: d.given.enter(&c), backup: d.backup}
	o, backup := c.original()
	if out.backup = out.backup || backup; !out.backup {
		out.originals = out.given
		return out
	}
	if !backup {
		o = c
	}
	out.originals = d.originals.enter(&o)
	return out
}

// enter returns the trail after a further name, or nil.
func (t trail) enter(c *component) trail {
	var out trail
	for _, r := range t {
		out = out.follow(r.specialEntry, r.parts, c)
	}
	for _, e := range c.entries(false) {
		if len(e.parts) > 1 {
			out = out.follow(e, e.parts, c)
		}
	}
	return out
}

// follow appends the rests of a pattern after a further name.
func (t trail) follow(e *specialEntry, parts []part, c *component) trail {
	for len(parts) > 0 && parts[0].text == anyNames {
		t = append(t, rest{e, parts})
		parts = parts[1:]
	}
	if len(parts) > 1 && c.is(parts[0]) {
		t = append(t, rest{e, parts[1:]})
	}
	return t
}

// Find returns the protection of a name in the directory. any is false if no entry applies.
func (d Dir) Find(name string) (f Protection, any bool) {
	c := componentOf(name)
	d.given.find(&c, &f)
	if o, backup := c.original(); backup || d.backup {
		if !backup {
			o = c
		}
		var secrets Protection
		d.originals.find(&o, &secrets)
		f.addSecret(secrets.Secret, secrets.SecretAll)
		f.addSecret(secrets.Hidden, secrets.SecretAll)
	}
	return f, f.ReadOnly != nil || f.Secret != nil
}

func (t trail) find(c *component, f *Protection) {
	begun := c.entries(true)
	if len(t)+len(begun) == 0 {
		return
	}
	names := []component{*c}
	for _, r := range t {
		f.add(r.specialEntry, match(r.parts, names), c)
	}
	for _, e := range begun {
		f.add(e, match(e.parts, names), c)
	}
}

func (f *Protection) add(e *specialEntry, how reach, c *component) {
	if how != reachExact && how != reachInside {
		return
	}
	switch e.Care {
	case Closed, Asked:
		if e.Pattern == headFile {
			return
		}
		if all := how == reachInside; f.ReadOnly == nil || all && !f.ReadOnlyAll {
			f.ReadOnly, f.ReadOnlyAll = &e.Special, all
		}
	case Secret:
		if !c.isHarmless() {
			f.addSecret(&e.Special, how == reachInside)
		}
	}
}

func (f *Protection) addSecret(s *Special, all bool) {
	if s == nil {
		return
	}
	f.SecretAll = f.SecretAll || all
	if f.Secret == nil {
		f.Secret = s
	}
	if f.Hidden == nil && !s.OfGit() {
		f.Hidden = s
	}
}

// headFile is the file that makes a directory a git repository.
const headFile = "HEAD"

// WrittenByGit reports whether git itself writes the path.
func (s *Special) WrittenByGit() bool {
	return s.OfGit() && (strings.HasSuffix(s.Pattern, "/config") || strings.Contains(s.Pattern, "/rebase-") || strings.Contains(s.Pattern, "/sequencer/"))
}

// OfGit reports whether the path is in the directory of a git repository.
func (s *Special) OfGit() bool { return strings.HasPrefix(s.Pattern, gitDir+"/") }
