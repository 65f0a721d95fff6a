package policy

import (
	"path"
	"slices"
	"strings"
)

// index finds the rules that could speak of a call, so that thousands of
// remembered answers cost nothing. What they say is decided by [Rule.matches].
//
// A rule is filed under its tool and one key of one condition: the text of an
// exact one, the part before the first star of a path or of a command, the name
// of a host. A call is looked up under every key that its arguments can have:
// each directory above a path, each beginning of a command. Where an argument
// leaves a doubt, all rules about it are candidates.
type index struct {
	plain map[string][]int       // rules without such a condition, by tool
	keyed map[ruleKey][]int      // the others
	kinds map[string][]argOfKind // of each tool, what keyed rules look at
	all   map[ruleKey][]int      // the keyed rules by that, with an empty text
}

type argOfKind struct {
	arg  string
	kind Kind
}

type ruleKey struct {
	tool string
	argOfKind
	text string
}

func newIndex() index {
	return index{map[string][]int{}, map[ruleKey][]int{}, map[string][]argOfKind{}, map[ruleKey][]int{}}
}

func (x *index) add(i int, r *Rule) {
	for j := range r.Where {
		c := &r.Where[j]
		text, ok := c.key()
		if !ok {
			continue
		}
		at := argOfKind{c.arg, c.kind}
		if !slices.Contains(x.kinds[r.Tool], at) {
			x.kinds[r.Tool] = append(x.kinds[r.Tool], at)
		}
		key := ruleKey{r.Tool, at, text}
		x.keyed[key] = append(x.keyed[key], i)
		key.text = ""
		x.all[key] = append(x.all[key], i)
		return
	}
	x.plain[r.Tool] = append(x.plain[r.Tool], i)
}

// key is what a rule with this condition is filed under.
func (c *Condition) key() (string, bool) {
	if c.not || strings.HasPrefix(c.arg, "/") {
		return "", false
	}
	switch c.kind {
	case Is:
		return c.value, true
	case Path:
		return c.path.literal, true
	case Hostname:
		return c.host.name, true
	case Words:
		return strings.Join(c.words.words[:c.words.literal], "\x00"), true
	}
	return "", false
}

// find calls try with the position of every rule that could speak of the call.
// A position can come twice.
func (x *index) find(name string, args *arguments, try func(int)) {
	for _, of := range []string{name, AnyTool} {
		for _, i := range x.plain[of] {
			try(i)
		}
		for _, at := range x.kinds[of] {
			x.findKeyed(ruleKey{tool: of, argOfKind: at}, args, try)
		}
	}
}

func (x *index) findKeyed(key ruleKey, args *arguments, try func(int)) {
	values := args.values(key.arg).values
	if values == nil {
		if key.kind == Path { // it is the working directory then
			x.each(x.all[key], try)
		}
		return
	}
	for i := range values {
		v := &values[i]
		if !v.isText { // it can be written in several ways, or is no path, host or command
			x.each(x.all[key], try)
			continue
		}
		look := func(text string) {
			k := key
			k.text = text
			x.each(x.keyed[k], try)
		}
		switch key.kind {
		case Is:
			look(v.text)
		case Path:
			name, sure := v.path(args.cwd)
			if !sure {
				x.each(x.all[key], try)
				continue
			}
			for name = strings.TrimSuffix(name, "/"); ; {
				look(name)
				cut := strings.LastIndexByte(name, '/')
				if cut < 0 {
					break
				}
				name = name[:cut]
			}
		case Hostname:
			name, ok := v.host()
			if !ok {
				x.each(x.all[key], try)
				continue
			}
			for more := true; more; {
				look(name)
				_, name, more = strings.Cut(name, ".")
			}
		case Words:
			line := v.command()
			if !line.plain() {
				x.each(x.all[key], try)
				continue
			}
			x.lookWords(line.commands[0], look)
		}
	}
}

// lookWords looks up each beginning of a command, with the program as it stands
// there and by its name alone.
func (x *index) lookWords(words []string, look func(string)) {
	joined := strings.Join(words, "\x00")
	at := 0
	base := path.Base(words[0])
	for _, w := range words {
		at += len(w)
		look(joined[:at])
		if base != words[0] {
			look(base + joined[len(words[0]):at])
		}
		at++
	}
}

func (x *index) each(positions []int, try func(int)) {
	for _, i := range positions {
		try(i)
	}
}
