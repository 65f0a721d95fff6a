package match

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/policy/command"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/policy/paths"
)

// Arguments holds the arguments of one call. They are decoded on first use: many rules may
// need them, and most calls meet no such rule.
type Arguments struct {
	raw     json.RawMessage
	cwd     string
	work    *Work // account that pays for decoding and looking up
	decoded bool
	all     map[string]json.RawMessage // the decoded arguments; nil: raw is not an object
	derived string                     // name of an argument with values from another argument; empty: none
	derive  func() ([]string, bool)    // returns the values of derived, and whether they are known

	lookups []lookup // results so far; few, so a map would cost more
}

// NewArguments returns the arguments of a call. raw is the JSON object as it was sent, cwd the
// working directory of the call, and work pays for decoding.
func NewArguments(raw json.RawMessage, cwd string, work *Work) *Arguments {
	return &Arguments{raw: raw, cwd: cwd, work: work}
}

// Derive adds values that are written in another argument to the argument of this name. derive
// is called when the values are needed; known is false if it cannot tell them.
func (a *Arguments) Derive(name string, derive func() (values []string, known bool)) {
	a.derived, a.derive = name, derive
}

// lookup holds the values that the name of an argument, or a pointer, leads to.
type lookup struct {
	arg     string
	values  []value // nil: none
	lacks   bool    // set if the pointer led to no value at some of the places that it passed
	unknown bool    // set if there was not enough work left to look the values up
	work    *Work
}

// take takes units of work, as [Work.take]. If there are not enough, the lookup is unknown.
func (l *lookup) take(units int) bool {
	l.unknown = l.unknown || !l.work.take(units)
	return !l.unknown
}

// value is an argument, or a part of an argument.
type value struct {
	text   string // a string as it is; anything else as canonical JSON
	isText bool
	// caseDiffers is set if the name of the value differs from the requested name in case.
	// Many decoders accept such a name.
	caseDiffers bool

	cleaned        string // text as a path, if didPath; sure: the path is certain
	sure, didPath  bool
	name           string // text as a host, if didURL and isHost
	isHost, didURL bool
	line           command.Line // text as a command, if didLine
	didLine        bool
}

func (v *value) path(cwd string) (string, bool) {
	if !v.didPath {
		v.cleaned, v.sure = paths.Clean(v.text, cwd)
		v.didPath = true
	}
	return v.cleaned, v.sure
}

func (v *value) host() (string, bool) {
	if !v.didURL {
		v.name, v.isHost = network.HostOf(v.text)
		v.didURL = true
	}
	return v.name, v.isHost
}

func (v *value) command() *command.Line {
	if !v.didLine {
		v.line = command.Parse(v.text)
		v.didLine = true
	}
	return &v.line
}

// Get returns an argument as it was sent.
func (a *Arguments) Get(name string) (json.RawMessage, bool) {
	raw, ok := a.Object()[name]
	return bytes.TrimSpace(raw), ok
}

// Object returns all arguments, by name; nil if they are not a JSON object.
func (a *Arguments) Object() map[string]json.RawMessage {
	if !a.decoded {
		a.decoded = true
		if json.Unmarshal(a.raw, &a.all) != nil {
			a.all = nil
		}
	}
	return a.all
}

// values returns the values of an argument or a JSON pointer. There can be several if a
// pointer has a star, or if names differ only in case.
func (a *Arguments) values(arg string) *lookup {
	if !a.work.take(1 + len(a.lookups)/4) {
		return &lookup{unknown: true}
	}
	for i := range a.lookups {
		if a.lookups[i].arg == arg {
			return &a.lookups[i]
		}
	}
	l := lookup{arg: arg, work: a.work}
	if pointer, ok := strings.CutPrefix(arg, "/"); ok {
		l.inObject(a.Object(), pointer, false)
	} else {
		l.named(a.Object(), arg, "", false, false)
	}
	if name := strings.TrimPrefix(arg, "/"); a.derive != nil && (strings.EqualFold(name, a.derived) || arg == "/*") {
		l.addDerived(a, name != a.derived && arg != "/*")
	}
	a.lookups = append(a.lookups, l)
	return &a.lookups[len(a.lookups)-1]
}

func (l *lookup) addDerived(a *Arguments, likely bool) {
	if !l.take(len(a.raw)) {
		return
	}
	texts, known := a.derive()
	l.unknown = !known
	for _, text := range texts {
		l.values = append(l.values, value{text: text, isText: true, caseDiffers: likely})
		l.lacks = false // the derived argument need not exist in the object
	}
}

// inObject follows a pointer into an object. A star stands for every member, even if one of
// them is called "*".
func (l *lookup) inObject(object map[string]json.RawMessage, pointer string, likely bool) {
	step, rest, more := strings.Cut(pointer, "/")
	if step != "*" {
		l.named(object, unescape(step), rest, more, likely)
		return
	}
	l.lacks = l.lacks || len(object) == 0
	for _, key := range slices.Sorted(maps.Keys(object)) {
		l.follow(object[key], rest, more, likely)
	}
}

// named follows a pointer from the members with this name, in any case.
func (l *lookup) named(object map[string]json.RawMessage, name, pointer string, more, likely bool) {
	found := false
	if !l.take(len(object)) {
		return
	}
	for key, raw := range object {
		if key == name || strings.EqualFold(key, name) {
			found = true
			l.follow(raw, pointer, more, likely || key != name)
		}
	}
	l.lacks = l.lacks || !found
}

func (l *lookup) inList(list []json.RawMessage, pointer string, likely bool) {
	step, rest, more := strings.Cut(pointer, "/")
	found := false
	for i, raw := range list {
		if step == "*" || step == strconv.Itoa(i) {
			found = true
			l.follow(raw, rest, more, likely)
		}
	}
	l.lacks = l.lacks || !found
}

// follow adds the value or, if the pointer has more steps, follows it into the value.
func (l *lookup) follow(raw json.RawMessage, pointer string, more, likely bool) {
	if more {
		l.into(raw, pointer, likely)
		return
	}
	cost := len(raw) / 8
	if len(raw) > 0 && raw[0] != '"' {
		cost = len(raw) * 16 // it is converted to canonical JSON
	}
	if !l.take(1 + cost) {
		return
	}
	v := valueOf(raw)
	v.caseDiffers = likely
	l.values = append(l.values, v)
}

func (l *lookup) into(raw json.RawMessage, pointer string, likely bool) {
	var object map[string]json.RawMessage
	var list []json.RawMessage
	switch {
	case !l.take(len(raw) * 4):
	case json.Unmarshal(raw, &object) == nil:
		l.inObject(object, pointer, likely)
	case json.Unmarshal(raw, &list) == nil:
		l.inList(list, pointer, likely)
	default:
		l.lacks = true
	}
}

// Pointer returns the JSON pointer to an argument or, with steps, to a value inside.
func Pointer(name string, steps ...string) string {
	var b strings.Builder
	for _, s := range append([]string{name}, steps...) {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(s))
	}
	return b.String()
}

func unescape(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
}

func valueOf(raw json.RawMessage) value {
	raw = bytes.TrimSpace(raw)
	if s, ok := Text(raw); ok {
		return value{text: s, isText: true}
	}
	return value{text: canonicalJSON(raw)}
}

// Texts returns the values of an argument or a JSON pointer: a string as it is, anything else
// as canonical JSON.
func (a *Arguments) Texts(arg string) []string {
	var out []string
	for _, v := range a.values(arg).values {
		out = append(out, v.text)
	}
	return out
}

// Commands returns the values of an argument, parsed as command lines. Each is parsed once.
func (a *Arguments) Commands(arg string) iter.Seq[*command.Line] {
	return func(yield func(*command.Line) bool) {
		values := a.values(arg).values
		for i := range values {
			if !yield(values[i].command()) {
				return
			}
		}
	}
}

// Text returns an argument that is a string. The result is false for any other.
func (a *Arguments) Text(name string) (string, bool) {
	raw, ok := a.Get(name)
	if !ok {
		return "", false
	}
	return Text(raw)
}

// Text returns the string that a JSON value holds. ok is false for any other value.
func Text(raw json.RawMessage) (s string, ok bool) {
	// null would decode into an empty string.
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), true // no escapes: the common case
	}
	var unquoted string // a variable of its own: s would always be on the heap
	err := json.Unmarshal(raw, &unquoted)
	return unquoted, err == nil
}
