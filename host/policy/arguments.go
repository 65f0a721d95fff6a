package policy

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// arguments are those of one call, decoded when the first is asked for: many
// rules may look at them, most calls meet none that does.
type arguments struct {
	raw     json.RawMessage
	cwd     string
	decoded bool
	all     map[string]json.RawMessage

	looked []lookedUp // few: a map would cost more
}

// lookedUp is what the name of an argument, or a pointer, has led to.
type lookedUp struct {
	arg    string
	values []value // nil: nothing
	// lacks: the pointer has led nowhere at some of the places where it was
	// followed to.
	lacks bool
}

// value is one argument, or a part of one.
type value struct {
	text   string // a string as it is, anything else as plain JSON
	isText bool
	// likely: its name differs in case from the one that was asked for. Many
	// decoders take it for that one all the same.
	likely bool

	cleaned        string
	sure, didPath  bool
	name           string
	isHost, didURL bool
	line           *commandLine
}

func (v *value) path(cwd string) (string, bool) {
	if !v.didPath {
		v.cleaned, v.sure = cleanPath(v.text, cwd)
		v.didPath = true
	}
	return v.cleaned, v.sure
}

func (v *value) host() (string, bool) {
	if !v.didURL {
		v.name, v.isHost = hostOf(v.text)
		v.didURL = true
	}
	return v.name, v.isHost
}

func (v *value) command() *commandLine {
	if v.line == nil {
		line := parseCommand(v.text)
		v.line = &line
	}
	return v.line
}

// get returns an argument as it was sent.
func (a *arguments) get(name string) (json.RawMessage, bool) {
	raw, ok := a.object()[name]
	return bytes.TrimSpace(raw), ok
}

func (a *arguments) object() map[string]json.RawMessage {
	if !a.decoded {
		a.decoded = true
		if json.Unmarshal(a.raw, &a.all) != nil {
			a.all = nil
		}
	}
	return a.all
}

// values returns what an argument, or a JSON pointer, names. More than one is
// there if a pointer has a star, or names differ in case alone.
func (a *arguments) values(arg string) *lookedUp {
	for i := range a.looked {
		if a.looked[i].arg == arg {
			return &a.looked[i]
		}
	}
	l := lookedUp{arg: arg}
	if pointer, ok := strings.CutPrefix(arg, "/"); ok {
		l.inObject(a.object(), pointer, false)
	} else {
		l.follow(named(a.object(), arg), "", false, false)
	}
	a.looked = append(a.looked, l)
	return &a.looked[len(a.looked)-1]
}

// member is a member of an object, or an element of a list.
type member struct {
	raw    json.RawMessage
	likely bool // see value
}

func (m member) value() value {
	v := valueOf(m.raw)
	v.likely = m.likely
	return v
}

// named are the members with that name, in whatever case.
func named(object map[string]json.RawMessage, name string) []member {
	var out []member
	if raw, ok := object[name]; ok {
		out = append(out, member{raw: raw})
	}
	for key, raw := range object {
		if key != name && strings.EqualFold(key, name) {
			out = append(out, member{raw, true})
		}
	}
	return out
}

// inObject follows a pointer from an object. A star is every member, also
// where one has that name.
func (l *lookedUp) inObject(object map[string]json.RawMessage, pointer string, likely bool) {
	step, rest, more := strings.Cut(pointer, "/")
	if step != "*" {
		l.follow(named(object, unpoint(step)), rest, more, likely)
		return
	}
	var next []member
	for _, key := range slices.Sorted(maps.Keys(object)) {
		next = append(next, member{raw: object[key]})
	}
	l.follow(next, rest, more, likely)
}

func (l *lookedUp) inList(list []json.RawMessage, pointer string, likely bool) {
	step, rest, more := strings.Cut(pointer, "/")
	var next []member
	for i, raw := range list {
		if step == "*" || step == strconv.Itoa(i) {
			next = append(next, member{raw: raw})
		}
	}
	l.follow(next, rest, more, likely)
}

// follow goes on from each member, if there is more to the pointer.
func (l *lookedUp) follow(next []member, pointer string, more, likely bool) {
	l.lacks = l.lacks || len(next) == 0
	for _, m := range next {
		m.likely = m.likely || likely
		var object map[string]json.RawMessage
		var list []json.RawMessage
		switch {
		case !more:
			l.values = append(l.values, m.value())
		case json.Unmarshal(m.raw, &object) == nil:
			l.inObject(object, pointer, m.likely)
		case json.Unmarshal(m.raw, &list) == nil:
			l.inList(list, pointer, m.likely)
		default:
			l.lacks = true
		}
	}
}

func unpoint(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
}

func valueOf(raw json.RawMessage) value {
	raw = bytes.TrimSpace(raw)
	if s, ok := str(raw); ok {
		return value{text: s, isText: true}
	}
	return value{text: plainJSON(raw)}
}

// str returns an argument that is a string, and nothing else.
func (a *arguments) str(name string) (string, bool) {
	raw, ok := a.get(name)
	if !ok {
		return "", false
	}
	return str(raw)
}

func str(raw json.RawMessage) (s string, ok bool) {
	// null decodes into a string too, as the empty one.
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}
