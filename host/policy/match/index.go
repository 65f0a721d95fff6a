package match

import (
	"path"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/command"
	"github.com/stockade-dev/stockade/host/policy/paths"
)

// Index finds the rules that could apply to a call, so that thousands of remembered answers
// cost nothing. It knows rules by their positions. [Condition.Holds] then decides whether
// they apply.
//
// A rule is filed under its tool and the key of one condition: the value of an equal one,
// the part before the first star of a path or a command, or the name of a host. A call is
// looked up under every key that its arguments can have: each directory above a path, each
// beginning of a command. If an argument is ambiguous, all rules about it are candidates.
type Index struct {
	unkeyed map[string][]int       // rules without a condition that has a key, by tool
	keyed   map[ruleKey][]int      // the other rules, by key
	kinds   map[string][]argOfKind // arguments and kinds of keyed rules, by tool
	all     map[ruleKey][]int      // all keyed rules about an argument and kind, by key with an empty text
}

type argOfKind struct {
	arg  string
	kind Kind
}

// ruleKey is the key of a rule: its tool, and an argument, kind and text of a condition.
type ruleKey struct {
	tool string
	argOfKind
	text string
}

// NewIndex returns an index without rules.
func NewIndex() *Index {
	return &Index{map[string][]int{}, map[ruleKey][]int{}, map[string][]argOfKind{}, map[ruleKey][]int{}}
}

// Add files the rule at position i, about a tool, with these conditions.
func (x *Index) Add(i int, tool string, where []Condition) {
	for j := range where {
		c := &where[j]
		text, ok := c.key()
		if !ok {
			continue
		}
		at := argOfKind{c.arg, c.kind}
		key := ruleKey{tool, at, text}
		x.keyed[key] = append(x.keyed[key], i)
		key.text = ""
		if x.all[key] == nil {
			x.kinds[tool] = append(x.kinds[tool], at)
		}
		x.all[key] = append(x.all[key], i)
		return
	}
	x.unkeyed[tool] = append(x.unkeyed[tool], i)
}

// key returns the text under which a rule with this condition is filed. The result is false if
// the condition has no key.
func (c *Condition) key() (string, bool) {
	if c.not || strings.HasPrefix(c.arg, "/") {
		return "", false
	}
	switch c.kind {
	case Equal:
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

// Unkeyed returns the positions of the rules about a tool that are filed under no key.
func (x *Index) Unkeyed(tool string) []int { return x.unkeyed[tool] }

// Find calls try with the position of every rule about a tool that could apply to the call,
// maybe more than once. It calls begin with the rule that the following work is charged to.
func (x *Index) Find(tool string, args *Arguments, begin, try func(int)) {
	each(x.unkeyed[tool], try)
	for _, at := range x.kinds[tool] {
		key := ruleKey{tool: tool, argOfKind: at}
		begin(x.all[key][0])
		x.findKeyed(key, args, begin, try)
	}
}

func (x *Index) findKeyed(key ruleKey, args *Arguments, begin, try func(int)) {
	all := x.all[key]
	found := args.values(key.arg)
	if found.values == nil || found.unknown {
		if found.unknown || key.kind == Path { // a missing path stands for the working directory
			each(all, try)
		}
		return
	}
	for i := range found.values {
		begin(all[0])
		if !x.findValue(key, &found.values[i], args, try) {
			each(all, try)
			return
		}
	}
}

// findValue finds the rules about one value. It returns false if all rules could be about the
// value: if it can be written in several ways, or is no path, host or command.
func (x *Index) findValue(key ruleKey, v *value, args *Arguments, try func(int)) bool {
	if !v.isText {
		return false
	}
	look := func(text string) {
		key.text = text
		each(x.keyed[key], try)
	}
	switch key.kind {
	case Equal:
		look(v.text)
	case Path:
		name, sure := v.path(args.cwd)
		name = strings.TrimSuffix(name, "/")
		for len(name) > paths.MaxPattern { // no rule is longer
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
		if !args.work.take(64*len(v.text)) || !v.command().StartsOneProgram() {
			return false
		}
		findWords(v.line.Commands[0], look)
	}
	return true
}

// findWords looks up each beginning of a command that a rule can have, with the program as it
// is written and without its directory.
func findWords(words []string, look func(string)) {
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

func each(positions []int, try func(int)) {
	for _, i := range positions {
		try(i)
	}
}
