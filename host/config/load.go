package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"github.com/stockade-dev/stockade/host/internal/nearest"
)

// Limits on a file.
const (
	MaxFileBytes = 1 << 20
	maxErrors    = 10
	// Our keys have one dot and our values nest once. What is deeper is a
	// mistake or an attack: the decoder's time grows with the square of it.
	maxDots  = 8
	maxDepth = 8
)

// Layer is who wrote a file.
type Layer int

const (
	// User is the file of the person who runs the program.
	User Layer = iota
	// Project is the file in the working directory, which may have come with a
	// repository. See [Class] for what it may set.
	Project
)

// String returns "user" or "project".
func (l Layer) String() string {
	if l == Project {
		return "project"
	}
	return "user"
}

// File is what one agent.toml sets.
type File struct {
	Path   string // as it was given to Load
	Layer  Layer
	SHA256 string // of its bytes, in hex
	// Trusted: a person has trusted a project's file with exactly this content.
	// Load leaves it false.
	Trusted bool

	settings map[string]setting
}

type setting struct {
	value any // checked, of the type of the key's field
	line  int
}

// Error is one mistake in a file.
type Error struct {
	Path string
	Line int    // from 1; 0 when the file as a whole is at fault
	Key  string // can be empty
	What string // a sentence for the user, the key included
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Path, e.What)
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.What)
}

// Load reads a file and checks every key and value in it. A file that does not
// exist gives an error for which errors.Is(err, fs.ErrNotExist) holds. Mistakes
// in the file are *Error values, at most ten, joined in the order of their
// lines; no File is returned then. Paths and values are not looked up: that a
// mounted directory exists is for the caller to see.
func Load(path string, layer Layer) (*File, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, layer, data)
}

// Parse is [Load] of what was read from the file already, by whoever checks who
// could have written it.
func Parse(path string, layer Layer, data []byte) (*File, error) { return load(path, layer, data) }

func read(path string) ([]byte, error) {
	// Before it is opened, because opening a pipe would wait for a writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{Path: path, What: "it is not a regular file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return data, nil
}

// load is Load without the file system.
func load(path string, layer Layer, data []byte) (*File, error) {
	fail := func(line int, format string, args ...any) error {
		return &Error{Path: path, Line: line, What: fmt.Sprintf(format, args...)}
	}
	src, err := Source(path, data)
	if err != nil {
		return nil, err
	}
	// Into Primitives, because only they lead back to a position; see line.
	var top map[string]toml.Primitive
	meta, err := toml.Decode(src, &top)
	if err != nil {
		if parse, ok := errors.AsType[toml.ParseError](err); ok {
			return nil, fail(parse.Position.Line, "%s", parse.Message)
		}
		return nil, fail(0, "%v", err)
	}
	tree := make(map[string]any, len(top))
	for k, p := range top {
		var v any
		if err := meta.PrimitiveDecode(p, &v); err != nil {
			return nil, fail(0, "%v", err)
		}
		tree[k] = v
	}
	sum := sha256.Sum256(data) // of what was parsed; the file is not read again
	c := checker{
		file: &File{Path: path, Layer: layer, SHA256: hex.EncodeToString(sum[:]), settings: make(map[string]setting)},
		src:  src, tree: tree, meta: &meta, top: top,
		done: make(map[string]bool),
	}
	return c.check()
}

// trimMark takes off the byte order mark, by which positions would be off.
func trimMark(s string) string { return strings.TrimPrefix(s, "\ufeff") }

// checker walks the keys of a decoded file.
type checker struct {
	file *File
	src  string
	tree map[string]any
	meta *toml.MetaData
	top  map[string]toml.Primitive

	done map[string]bool // keys whose children need no look
	errs []error
}

func (c *checker) check() (*File, error) {
	for _, path := range c.meta.Keys() { // in the order of the file
		if len(c.errs) == maxErrors {
			break
		}
		c.key(path)
	}
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	return c.file, nil
}

func (c *checker) key(path toml.Key) {
	for n := 1; n <= len(path); n++ {
		if c.done[path[:n].String()] {
			return
		}
	}
	name := path.String() // quotes what is no bare word, so "a.b" is not a.b
	value := lookup(c.tree, path)
	table, tableIsOne := value.(map[string]any)
	k := find(name)
	switch {
	case k != nil:
		c.done[name] = true
		v, err := k.kind.fromTOML(value)
		if err != nil {
			c.fail(path, "%s: %v", name, err)
			return
		}
		c.file.settings[name] = setting{value: v, line: c.line(path)}
	case isTable(name):
		if !tableIsOne {
			c.done[name] = true
			c.fail(path, "%s: %v", name, wrongType(value, "a table: ["+name+"] and its keys below it"))
		}
	case tableIsOne && len(table) > 0:
		// Its keys follow; each is reported with its full name.
	default:
		c.done[name] = true
		c.fail(path, "unknown key %s%s", clip(name), hint(path))
	}
}

// clip quotes a key for a message.
func clip(name string) string {
	const most = 80
	if len(name) > most {
		return fmt.Sprintf("%.*q...", most, name)
	}
	return fmt.Sprintf("%q", name)
}

// hint helps with an unknown key.
func hint(path toml.Key) string {
	last := strings.ToLower(path[len(path)-1])
	for _, word := range []string{"api_key", "apikey", "api-key", "secret", "token", "password"} {
		if strings.HasSuffix(last, word) {
			return "; secrets are never in a file: put the key into the environment variable that model.api_key_env names"
		}
	}
	// The right word under the wrong table, or under none.
	misplaced := ""
	for _, k := range keys {
		if word := k.name[strings.LastIndexByte(k.name, '.')+1:]; word == last {
			misplaced = nearest.Hint(k.name, []string{k.name})
		}
	}
	if misplaced != "" && (len(path) == 1 || isTable(path[0])) {
		return misplaced
	}
	if h := nearest.Hint(strings.Join(path, "."), Keys()); h != "" {
		return h
	}
	return misplaced
}

func lookup(tree map[string]any, path toml.Key) any {
	var v any = tree
	for _, k := range path {
		switch t := v.(type) {
		case map[string]any:
			v = t[k]
		default:
			return nil // below an array of tables, whose head was reported
		}
	}
	return v
}

func (c *checker) fail(path toml.Key, format string, args ...any) {
	c.errs = append(c.errs, &Error{
		Path: c.file.Path, Line: c.line(path), Key: path.String(), What: fmt.Sprintf(format, args...),
	})
}

// errProbe makes the decoder tell where a value stands: it adds the position
// to the error of an Unmarshaler, and nowhere else does it give one away.
var errProbe = errors.New("probe")

type probe struct{}

func (*probe) UnmarshalTOML(any) error { return errProbe }

// line returns the line on which a key stands; 0 when it is not known.
func (c *checker) line(path toml.Key) int {
	at := c.top
	for i, k := range path {
		p, ok := at[k]
		if !ok {
			return 0
		}
		if i < len(path)-1 {
			at = nil
			if err := c.meta.PrimitiveDecode(p, &at); err != nil {
				return 0
			}
			continue
		}
		parse, ok := errors.AsType[toml.ParseError](c.meta.PrimitiveDecode(p, &probe{}))
		if !ok || parse.Position.Line == 0 {
			return 0
		}
		start := min(parse.Position.Start, len(c.src))
		// A multi-line string is found at its contents, which can begin on the
		// line after the quotes.
		before := strings.TrimSuffix(strings.TrimSuffix(c.src[:start], "\n"), "\r")
		if !strings.HasSuffix(before, `"""`) && !strings.HasSuffix(before, "'''") {
			before = c.src[:start]
		}
		return 1 + strings.Count(before, "\n")
	}
	return 0
}

// tooDeep finds a key or a value that is nested deeper than any of ours, before
// the decoder spends time on it. It follows strings and comments only as far
// as that needs; what is not TOML is for the decoder to refuse.
func tooDeep(src string) (line int, what string) {
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

// skipString returns the length of the string with which s begins.
func skipString(s string) int {
	quote := s[0]
	triple := strings.Repeat(string(quote), 3)
	multi := strings.HasPrefix(s, triple)
	i := 1
	if multi {
		i = 3
	}
	for i < len(s) {
		switch {
		case s[i] == '\\' && quote == '"':
			i += 2
		case s[i] == '\n' && !multi:
			return i // an error for the decoder
		case multi && strings.HasPrefix(s[i:], triple):
			i += 3
			for n := 0; n < 2 && i < len(s) && s[i] == quote; n++ {
				i++ // up to two quotes can stand before the closing three
			}
			return i
		case s[i] == quote && !multi:
			return i + 1
		default:
			i++
		}
	}
	return len(s)
}
