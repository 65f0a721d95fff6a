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
}

// value is one argument, or a part of one.
type value struct {
	text   string // a string as it is, anything else as JSON
	isText bool

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
	if !a.decoded {
		a.decoded = true
		if json.Unmarshal(a.raw, &a.all) != nil {
			a.all = nil
		}
	}
	raw, ok := a.all[name]
	return bytes.TrimSpace(raw), ok
}

// values returns what an argument, or a JSON pointer, names. More than one is
// there only if a pointer has a star.
func (a *arguments) values(arg string) ([]value, bool) {
	for i := range a.looked {
		if a.looked[i].arg == arg {
			return a.looked[i].values, a.looked[i].values != nil
		}
	}
	var found []value
	if pointer, ok := strings.CutPrefix(arg, "/"); ok {
		first, rest, more := strings.Cut(pointer, "/")
		for _, raw := range a.top(unpoint(first)) {
			if !more {
				found = append(found, valueOf(raw))
				continue
			}
			found = point(found, raw, rest)
		}
	} else if raw, ok := a.get(arg); ok {
		found = []value{valueOf(raw)}
	}
	a.looked = append(a.looked, lookedUp{arg, found})
	return found, found != nil
}

func (a *arguments) top(name string) []json.RawMessage {
	raw, ok := a.get(name)
	switch {
	case ok:
		return []json.RawMessage{raw}
	case name == "*":
		return sortedValues(a.all)
	}
	return nil
}

// point follows the rest of a pointer.
func point(found []value, raw json.RawMessage, pointer string) []value {
	step, rest, more := strings.Cut(pointer, "/")
	step = unpoint(step)
	var next []json.RawMessage
	var object map[string]json.RawMessage
	var list []json.RawMessage
	switch {
	case json.Unmarshal(raw, &object) == nil && object != nil:
		if v, ok := object[step]; ok {
			next = append(next, v)
		} else if step == "*" {
			next = sortedValues(object)
		}
	case json.Unmarshal(raw, &list) == nil && list != nil:
		if step == "*" {
			next = list
		} else if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(list) && strconv.Itoa(i) == step {
			next = append(next, list[i])
		}
	}
	for _, v := range next {
		if more {
			found = point(found, v, rest)
		} else {
			found = append(found, valueOf(v))
		}
	}
	return found
}

func sortedValues(object map[string]json.RawMessage) []json.RawMessage {
	var out []json.RawMessage
	for _, k := range slices.Sorted(maps.Keys(object)) {
		out = append(out, object[k])
	}
	return out
}

func unpoint(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
}

func valueOf(raw json.RawMessage) value {
	raw = bytes.TrimSpace(raw)
	if s, ok := str(raw); ok {
		return value{text: s, isText: true}
	}
	return value{text: string(raw)}
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
