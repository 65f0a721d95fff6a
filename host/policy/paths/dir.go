package paths

import "strings"

// Dir is a directory as somebody has it who walks a tree: it remembers how far
// its name has come along the list, so that a name in it costs no more than that
// name. What it says is what [SpecialForRead], [SpecialForChange] and [SpecialForMove] say of the whole path.
// Its methods may be called at the same time.
type Dir struct {
	given     trail
	originals trail // the same for the names that backups were made from
	backup    bool  // there is one among the names; otherwise both trails are the same
}

// trail is what is left of the patterns that have begun: one is left for each
// place where it can go on.
type trail []rest

type rest struct {
	*specialEntry
	parts []part
}

// Protection is what the list says of a name in a directory.
type Protection struct {
	// ReadOnly is the entry because of which no command may change it, or nil: one that
	// is closed, or one that would be asked about each time, which a command that
	// runs cannot be. Git itself changes HEAD.
	ReadOnly *Special
	// Secret is an entry of that care, or nil.
	Secret *Special
	// Hidden is Secret, unless that is what git has to read, its configuration.
	Hidden *Special
	// ReadOnlyAll and SecretAll say of a directory that this goes for all that is
	// in it.
	ReadOnlyAll, SecretAll bool
}

// DirOf is the Dir of an absolute path, with slashes.
func DirOf(name string) Dir {
	var d Dir
	for _, c := range components(nil, name) {
		d = d.enter(c)
	}
	return d
}

// Enter is the Dir of a directory in it.
func (d Dir) Enter(name string) Dir { return d.enter(componentOf(name)) }

// Repository is the directory as one that git takes for a repository, whatever
// its name is, see the function [PossibleRepositories].
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

// LeadsToReadOnly says that a path below the directory can be held because of how the
// directory is called.
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

// enter returns a new trail, or nil.
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

// follow appends what is left of a pattern after a name.
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

// Find says what a name in the directory is, and whether there is anything to
// say.
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

const headFile = "HEAD"

// WrittenByGit reports whether git changes the path by itself.
func (s *Special) WrittenByGit() bool {
	return s.OfGit() && (strings.HasSuffix(s.Pattern, "/config") || strings.Contains(s.Pattern, "/rebase-") || strings.Contains(s.Pattern, "/sequencer/"))
}

// OfGit reports whether the path is in a directory where git keeps a
// repository.
func (s *Special) OfGit() bool { return strings.HasPrefix(s.Pattern, gitDir+"/") }
