package keys

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// Limits on a file. A larger or deeper nested file is an error; errors after the first
// maxErrors are dropped.
const (
	MaxFileBytes = 1 << 20
	maxErrors    = 10
	// Our keys have a few dots and our values nest once. Deeper nesting is a mistake or an
	// attack: the decoder's time grows with the square of the depth.
	maxDots  = 8
	maxDepth = 8
)

// File holds the settings of a file.
type File struct {
	// Settings are in the order of the file; within one table of a list, sorted by name.
	Settings []Setting

	path string
	src  string
	meta toml.MetaData
	top  map[string]toml.Primitive
	errs []error
}

// Setting is a key that a file sets, or a table of the file.
type Setting struct {
	Key   int      // index of the key in the table of keys; negative: a TOML table, whose settings follow
	Path  []string // the words of its name, as in the file
	Value any      // of the type of the [Kind]; nil for a table
	Index int      // in a list of tables: index of the table with this setting; else 0

	listWords int // number of words in the name of that list of tables; 0 outside of a list
	line      int // first line of that table; 0: unknown
}

// String returns the name of the key for messages.
func (s Setting) String() string {
	if s.listWords == 0 {
		return toml.Key(s.Path).String()
	}
	name := fmt.Sprintf("[[%s]] %d", toml.Key(s.Path[:s.listWords]), s.Index+1)
	if len(s.Path) > s.listWords {
		name += ": " + toml.Key(s.Path[s.listWords:]).String()
	}
	return name
}

// Error is one mistake in a file.
type Error struct {
	Path    string
	Line    int    // line of the mistake, from 1; 0: unknown, or the file as a whole is at fault
	Message string // a sentence for the user, with the key
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Path, e.Message)
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Message)
}

// CheckSource returns the text of a TOML file. It is an error if the file is too large, is
// nested deeper than any of our files, or is no text.
func CheckSource(path string, data []byte) (string, error) {
	if len(data) > MaxFileBytes {
		return "", &Error{Path: path, Message: fmt.Sprintf("it has more than %d bytes", MaxFileBytes)}
	}
	src := strings.TrimPrefix(string(data), "\ufeff") // a byte order mark would shift positions
	if line, message := tooDeep(src); line > 0 {
		return "", &Error{Path: path, Line: line, Message: message}
	}
	return src, nil
}

// Parse checks every key and value of a file. Mistakes are *Error values, at most ten, joined
// in the order of their lines; then the *File is nil. For a key that is not in the table,
// unknown can return a hint; nil: there is only our own.
func (t Table) Parse(path string, data []byte, unknown func(path []string) string) (*File, error) {
	src, err := CheckSource(path, data)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, src: src}
	// Into Primitives, because only these lead back to a position; see Line.
	if f.meta, err = toml.Decode(src, &f.top); err != nil {
		if parse, ok := errors.AsType[toml.ParseError](err); ok {
			return nil, &Error{Path: path, Line: parse.Position.Line, Message: parse.Message}
		}
		return nil, &Error{Path: path, Message: err.Error()}
	}
	var tree map[string]any
	if _, err := toml.Decode(src, &tree); err != nil {
		return nil, &Error{Path: path, Message: err.Error()}
	}
	r := reader{table: t, words: t.words(), unknown: unknown, file: f, done: make(map[string]bool)}
	for _, key := range f.meta.Keys() { // in the order of the file
		if r.isHandled(key) {
			continue
		}
		for n := 1; n < len(key); n++ { // a table that is the value of a key may have no head
			if find(r.words, key[:n]) >= 0 {
				key = key[:n]
				break
			}
		}
		r.read(Setting{Path: key}, lookup(tree, key))
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

type reader struct {
	table   Table
	words   [][]string // words of each key's name
	unknown func([]string) string
	file    *File
	done    map[string]bool // names that were read already, with everything below them
}

// isHandled reports whether a key, or a table above it, was read already.
func (r *reader) isHandled(path toml.Key) bool {
	for n := 1; n <= len(path); n++ {
		if r.done[path[:n].String()] {
			return true
		}
	}
	return false
}

func (r *reader) read(s Setting, value any) {
	if len(r.file.errs) == maxErrors {
		return
	}
	s.Key = find(r.words, s.Path)
	name := toml.Key(s.Path).String() // quotes words with dots, so that "a.b" is not a.b
	fields, isTable := value.(map[string]any)
	if isTable && (s.Key == foundTable || s.Key == foundNothing && s.listWords == 0 && len(fields) > 0) {
		if s.Key == foundTable {
			r.file.Settings = append(r.file.Settings, s)
		}
		if s.listWords > 0 { // outside of a list, Parse reads its keys, by their full names
			r.fields(s, fields)
		}
		return
	}
	r.done[name] = true
	switch s.Key {
	case foundTable:
		r.file.Fail(s, wrongType(value, "a table: ["+name+"] and its keys below it"))
	case foundList:
		tables, ok := listOfTables(value)
		if !ok {
			r.file.Fail(s, wrongType(value, "[["+name+"]] and its keys below it"))
		}
		heads := listHeads(r.file.src, name, len(tables))
		for i, table := range tables {
			s.Index, s.listWords = i, len(s.Path)
			if heads != nil {
				s.line = heads[i]
			}
			r.file.Settings = append(r.file.Settings, s)
			r.fields(s, table)
		}
	case foundNothing:
		help := r.table.hint(s.Path)
		if r.unknown != nil {
			help = cmp.Or(r.unknown(s.Path), help)
		}
		r.file.fail(s, "unknown key "+clip(name)+help)
	default:
		v, err := r.table[s.Key].Kind.value(value)
		if err != nil {
			r.file.Fail(s, err)
			return
		}
		s.Value = v
		r.file.Settings = append(r.file.Settings, s)
	}
}

// fields reads the keys of one table in a list.
func (r *reader) fields(table Setting, fields map[string]any) {
	for _, word := range slices.Sorted(maps.Keys(fields)) {
		s := table
		s.Path = append(slices.Clone(table.Path), word)
		r.read(s, fields[word])
	}
}

// Fail records a mistake in a setting. Mistakes after the first ten are dropped.
func (f *File) Fail(s Setting, err error) { f.fail(s, fmt.Sprintf("%s: %v", s, err)) }

func (f *File) fail(s Setting, message string) {
	if len(f.errs) < maxErrors {
		f.errs = append(f.errs, &Error{Path: f.path, Line: f.Line(s), Message: message})
	}
}

// Err returns all recorded mistakes, joined; nil if there are none.
func (f *File) Err() error { return errors.Join(f.errs...) }

// listOfTables converts a list of tables, which TOML can write in two forms; false: v is none.
func listOfTables(v any) ([]map[string]any, bool) {
	switch v := v.(type) {
	case []map[string]any:
		return v, true
	case []any:
		tables := make([]map[string]any, len(v))
		for i, e := range v {
			var ok bool
			if tables[i], ok = e.(map[string]any); !ok {
				return nil, false
			}
		}
		return tables, true
	}
	return nil, false
}

// clip quotes a key for a message, shortened to 80 bytes.
func clip(name string) string {
	const maxBytes = 80
	if len(name) > maxBytes {
		return fmt.Sprintf("%.*q...", maxBytes, name)
	}
	return fmt.Sprintf("%q", name)
}

func lookup(tree map[string]any, path []string) any {
	var v any = tree
	for _, k := range path {
		t, _ := v.(map[string]any) // nil within an array of tables, which was reported as a whole
		v = t[k]
	}
	return v
}

// errProbe makes the decoder report the position of a value: the decoder adds it to the error
// of an Unmarshaler, and offers it nowhere else.
var errProbe = errors.New("probe")

type probe struct{}

func (*probe) UnmarshalTOML(any) error { return errProbe }

// Line returns the line of a setting; 0: unknown. For a setting in a list of tables it is the
// line of the table's head. It searches the file, so call it for messages only.
func (f *File) Line(s Setting) int {
	if s.listWords > 0 {
		return s.line
	}
	at := f.top
	for i, k := range s.Path {
		p, ok := at[k]
		if !ok {
			return 0
		}
		if i < len(s.Path)-1 {
			at = nil
			if err := f.meta.PrimitiveDecode(p, &at); err != nil {
				return 0
			}
			continue
		}
		return f.line(p)
	}
	return 0
}

// line returns the line of a value; for a table without a head, that of its first key.
func (f *File) line(p toml.Primitive) int {
	parse, ok := errors.AsType[toml.ParseError](f.meta.PrimitiveDecode(p, &probe{}))
	if !ok || parse.Position.Line == 0 {
		first := 0
		var fields map[string]toml.Primitive
		if f.meta.PrimitiveDecode(p, &fields) == nil {
			for _, field := range fields {
				if line := f.line(field); line > 0 && (first == 0 || line < first) {
					first = line
				}
			}
		}
		return first
	}
	start := min(parse.Position.Start, len(f.src))
	// The position of a multi-line string is that of its content, which can begin on the line
	// after the quotes.
	before := strings.TrimSuffix(strings.TrimSuffix(f.src[:start], "\n"), "\r")
	if !strings.HasSuffix(before, `"""`) && !strings.HasSuffix(before, "'''") {
		before = f.src[:start]
	}
	return 1 + strings.Count(before, "\n")
}

// listHeads returns the lines on which the tables of a list begin; the decoder knows only the
// last one. It returns nil if the text does not have exactly as many heads as tables, for
// example because the tables are written in another form.
func listHeads(src, name string, tables int) []int {
	head := regexp.MustCompile(`^\s*\[\[\s*` + regexp.QuoteMeta(name) + `\s*\]\]`)
	var lines []int
	n := 0
	for text := range strings.Lines(src) {
		n++
		if head.MatchString(text) {
			lines = append(lines, n)
		}
	}
	if len(lines) != tables {
		return nil
	}
	return lines
}

// tooDeep finds a key or a value that is nested deeper than any of ours, before the decoder
// spends time on it, or invalid UTF-8. It returns the first such line and an error message; 0:
// there is none. It parses only strings and comments, and leaves other mistakes to the
// decoder.
func tooDeep(src string) (line int, message string) {
	line = 1
	dots, depth := 0, 0
	for i := 0; i < len(src); {
		switch b := src[i]; b {
		case '\n':
			line++
			dots = 0
		case '#':
			for i < len(src) && src[i] != '\n' {
				i++
			}
			continue
		case '"', '\'':
			end := i + skipString(src[i:])
			line += strings.Count(src[i:end], "\n")
			i = end
			continue
		case '.':
			if dots++; dots > maxDots {
				return line, fmt.Sprintf("more than %d dots on a line; no key is nested so deep", maxDots)
			}
		case '[', '{':
			if depth++; depth > maxDepth {
				return line, fmt.Sprintf("more than %d brackets within each other; no value is nested so deep", maxDepth)
			}
		case ']', '}':
			depth = max(0, depth-1)
		}
		i++
	}
	if !utf8.ValidString(src) {
		bad := strings.IndexFunc(src, func(r rune) bool { return r == utf8.RuneError })
		return 1 + strings.Count(src[:max(bad, 0)], "\n"), "it is not valid UTF-8"
	}
	return 0, ""
}

// skipString returns the length of the string at the beginning of s.
func skipString(s string) int {
	quote := s[:1]
	end := strings.Repeat(quote, 3)
	multi := strings.HasPrefix(s, end)
	if !multi {
		end = quote
	}
	for i := len(end); i < len(s); i++ {
		switch {
		case s[i] == '\\' && quote == `"`:
			i++
		case s[i] == '\n' && !multi:
			return i // the decoder will report it
		case strings.HasPrefix(s[i:], end):
			i += len(end)
			for n := 0; n < 2 && multi && strings.HasPrefix(s[i:], quote); n++ {
				i++ // up to two quotes can stand before the closing three
			}
			return i
		}
	}
	return len(s)
}
