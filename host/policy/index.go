package policy

import (
	"path"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/command"
	"github.com/stockade-dev/stockade/host/policy/paths"
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
		key := ruleKey{r.Tool, at, text}
		x.keyed[key] = append(x.keyed[key], i)
		key.text = ""
		if x.all[key] == nil {
			x.kinds[r.Tool] = append(x.kinds[r.Tool], at)
		}
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
		return c.path.Literal(), true
	case Hostname:
		return c.host.Name(), true
	case Words:
		return strings.Join(c.words.Literal(), "\x00"), true
	}
	return "", false
}

// find calls try with the position of every rule that could speak of the call.
// A position can come twice. What it takes to look is for the rule that begin is
// called with.
func (x *index) find(name string, args *arguments, begin, try func(int)) {
	for _, of := range []string{name, AnyTool} {
		for _, i := range x.plain[of] {
			try(i)
		}
		for _, at := range x.kinds[of] {
			key := ruleKey{tool: of, argOfKind: at}
			begin(x.all[key][0])
			x.findKeyed(key, args, begin, try)
		}
	}
}

func (x *index) findKeyed(key ruleKey, args *arguments, begin, try func(int)) {
	all := x.all[key]
	found := args.values(key.arg)
	if found.values == nil || found.unknown {
		if found.unknown || key.kind == Path { // where there is no path, it is the working directory
			x.each(all, try)
		}
		return
	}
	for i := range found.values {
		begin(all[0])
		if !x.look(key, &found.values[i], args, try) {
			x.each(all, try)
			return
		}
	}
}

// look finds the rules about one value. It fails if all could be: where the value
// can be written in several ways, or is no path, host or command.
func (x *index) look(key ruleKey, v *value, args *arguments, try func(int)) bool {
	if !v.isText {
		return false
	}
	look := func(text string) {
		key.text = text
		x.each(x.keyed[key], try)
	}
	switch key.kind {
	case Is:
		look(v.text)
	case Path:
		name, sure := v.path(args.cwd)
		name = strings.TrimSuffix(name, "/")
		for len(name) > paths.MaxPattern { // which no rule is
			name = strings.TrimSuffix(name[:strings.LastIndexByte(name, '/')+1], "/")
		}
		if !sure || !args.work.take(len(name)*len(name)/256) {
			return false
		}
		for {
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
			return false
		}
		for more := true; more; {
			look(name)
			_, name, more = strings.Cut(name, ".")
		}
	case Words:
		if !args.work.take(64*len(v.text)) || !v.command().Plain() {
			return false
		}
		lookWords(v.line.Commands[0], look)
	}
	return true
}

// lookWords looks up each beginning of a command that a rule can have, with the
// program as it stands there and by its name alone.
func lookWords(words []string, look func(string)) {
	joined := strings.Join(words, "\x00")
	beginnings := func(line string) {
		for at := range min(len(line), command.MaxPattern) + 1 {
			if at == len(line) || line[at] == 0 {
				look(line[:at])
			}
		}
	}
	beginnings(joined)
	if base := path.Base(words[0]); base != words[0] {
		beginnings(base + joined[len(words[0]):])
	}
}

func (x *index) each(positions []int, try func(int)) {
	for _, i := range positions {
		try(i)
	}
}
