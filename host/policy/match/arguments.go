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

// Arguments are those of one call, decoded when the first is asked for: many
// rules may look at them, most calls meet none that does.
type Arguments struct {
	raw     json.RawMessage
	cwd     string
	work    *Work // what looking at them takes
	decoded bool
	all     map[string]json.RawMessage
	derived string                  // an argument that stands for what another one says; empty: there is none
	derive  func() ([]string, bool) // its values, and whether they could be told

	lookups []lookup // few: a map would cost more
}

// NewArguments takes the arguments as they were sent, a JSON object, and the
// working directory of the call.
func NewArguments(raw json.RawMessage, cwd string, work *Work) *Arguments {
	return &Arguments{raw: raw, cwd: cwd, work: work}
}

// Derive makes values that are written in another argument those of an argument of
// this name, too. derive is called when somebody asks for them; it reports whether
// it can tell them.
func (a *Arguments) Derive(name string, derive func() (values []string, known bool)) {
	a.derived, a.derive = name, derive
}

// lookup is what the name of an argument, or a pointer, has led to.
type lookup struct {
	arg    string
	values []value // nil: nothing
	// lacks: the pointer has led nowhere at some of the places where it was
	// followed to.
	lacks bool
	// unknown: there was not enough work left to look.
	unknown bool
	work    *Work
}

// take is [Work.take]; without it nothing is known of the values.
func (l *lookup) take(units int) bool {
	l.unknown = l.unknown || !l.work.take(units)
	return !l.unknown
}

// value is one argument, or a part of one.
type value struct {
	text   string // a string as it is, anything else as plain JSON
	isText bool
	// caseDiffers: its name differs in case from the one that was asked for. Many
	// decoders take it for that one all the same.
	caseDiffers bool

	cleaned        string
	sure, didPath  bool
	name           string
	isHost, didURL bool
	line           command.Line
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

// Object returns all arguments, by name.
func (a *Arguments) Object() map[string]json.RawMessage {
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
		l.lacks = false // it is no argument that could be there itself
	}
}

// inObject follows a pointer from an object. A star is every member, also
// where one has that name.
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

// named follows a pointer from the members with that name, in whatever case.
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

// follow takes a value, or goes on into it, if there is more to the pointer.
func (l *lookup) follow(raw json.RawMessage, pointer string, more, likely bool) {
	if more {
		l.into(raw, pointer, likely)
		return
	}
	cost := len(raw) / 8
	if len(raw) > 0 && raw[0] != '"' {
		cost = len(raw) * 16 // it is written anew
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

// Pointer is the JSON pointer to an argument, and on to an element of it.
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

// Texts returns what an argument or a JSON pointer leads to: a string as it is,
// anything else as JSON.
func (a *Arguments) Texts(arg string) []string {
	var out []string
	for _, v := range a.values(arg).values {
		out = append(out, v.text)
	}
	return out
}

// Commands reads what an argument leads to as command lines, each once for a
// decision.
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

// Text returns an argument that is a string, and nothing else.
func (a *Arguments) Text(name string) (string, bool) {
	raw, ok := a.Get(name)
	if !ok {
		return "", false
	}
	return Text(raw)
}

// Text returns a value of JSON that is a string, and nothing else.
func Text(raw json.RawMessage) (s string, ok bool) {
	// null decodes into a string too, as the empty one.
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), true // most are what they read like; raw is JSON
	}
	var unquoted string // or the result would always be on the heap
	err := json.Unmarshal(raw, &unquoted)
	return unquoted, err == nil
}
