package author

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/tool"
)

// Limits on a file of tests; more is an error.
const (
	maxScriptBytes = 1 << 20
	maxSections    = 1000
)

// Script is a file of tests.
type Script struct {
	Name string // for messages

	file     string // the file that it was read from; empty: none
	lines    []string
	files    []section
	answers  []*answer
	hosts    []network.Rule
	secrets  []secretLine
	mayRead  bool // the tools may read files
	mayWrite bool // the tools may also change files
	calls    []*call
	replaces []replacement // for update
}

// section is a line that begins with a keyword, with the indented lines that belong to it.
type section struct {
	line    int // number of the first line, from 1
	end     int // the number of the first line after the section
	keyword string
	rest    string
	body    []string // indented lines, without the common indentation
}

// text returns the body as text with a newline at the end; empty: there is no body.
func (s section) text() string {
	if len(s.body) == 0 {
		return ""
	}
	return strings.Join(s.body, "\n") + "\n"
}

type secretLine struct{ name, value string }

type call struct {
	section
	tool       string
	args       json.RawMessage
	expect     *section // a section result or error; nil: no result is expected yet
	fileChecks []section
}

// SyntaxError describes a mistake in a line of a file of tests.
type SyntaxError struct {
	File    string
	Line    int
	Message string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message) }

// ParseScript reads a file of tests. The error is a *[SyntaxError].
func ParseScript(name string, data []byte) (*Script, error) {
	s := &Script{Name: name}
	if len(data) > maxScriptBytes || !utf8.Valid(data) {
		return nil, &SyntaxError{name, 1, fmt.Sprintf("the file is not UTF-8 text of at most %d bytes", maxScriptBytes)}
	}
	s.lines = strings.Split(strings.ReplaceAll(strings.TrimSuffix(string(data), "\n"), "\r\n", "\n"), "\n")
	sections, err := s.split()
	if err != nil {
		return nil, err
	}
	for _, sec := range sections {
		if err := s.add(sec); err != nil {
			return nil, &SyntaxError{name, sec.line, err.Error()}
		}
	}
	if len(s.calls) == 0 {
		return nil, &SyntaxError{name, len(s.lines), "there is no call in it"}
	}
	return s, nil
}

func (s *Script) split() (out []section, err error) {
	open := false // indented lines belong to the last section
	for i, line := range s.lines {
		body, indented := strings.CutPrefix(line, "\t")
		if !indented {
			body, indented = strings.CutPrefix(line, "    ")
		}
		switch {
		case strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, "#"):
			open = false
		case indented && open:
			last := &out[len(out)-1]
			for range i - (last.end - 1) { // empty lines between
				last.body = append(last.body, "")
			}
			last.body, last.end = append(last.body, body), i+2
		case line[0] == ' ' || line[0] == '\t':
			return nil, &SyntaxError{s.Name, i + 1, "it is indented and belongs to nothing; what belongs to a line stands right below it, behind four spaces or a tab"}
		default:
			word, rest, _ := strings.Cut(line, " ")
			out = append(out, section{line: i + 1, end: i + 2, keyword: word, rest: strings.TrimSpace(rest)})
			open = true
			if len(out) > maxSections {
				return nil, &SyntaxError{s.Name, i + 1, fmt.Sprintf("more than %d things in one file", maxSections)}
			}
		}
	}
	return out, nil
}

var keywords = []string{"allow", "call", "error", "file", "gone", "has", "http", "result", "secret"}

func (s *Script) add(sec section) (err error) {
	if slices.Contains([]string{"allow", "file", "http", "secret"}, sec.keyword) && len(s.calls) > 0 {
		return fmt.Errorf("%s stands behind a call; what the tools are given is said first, for the whole file", sec.keyword)
	}
	if slices.Contains([]string{"allow", "secret", "gone"}, sec.keyword) && len(sec.body) > 0 {
		return fmt.Errorf("no lines belong to %s", sec.keyword)
	}
	switch sec.keyword {
	case "allow":
		return s.allow(sec)
	case "secret":
		name, value, ok := strings.Cut(sec.rest, " ")
		if !ok || !tool.ValidSecretName(name) {
			return fmt.Errorf("a secret is NAME VALUE")
		}
		s.secrets = append(s.secrets, secretLine{name, strings.TrimSpace(value)})
	case "file":
		if err := checkFile(sec.rest); err != nil {
			return err
		}
		if slices.ContainsFunc(s.files, func(f section) bool { return f.rest == sec.rest }) {
			return fmt.Errorf("the file %s is there already", sec.rest)
		}
		s.files = append(s.files, sec)
	case "http":
		a, err := parseAnswer(sec)
		if err != nil {
			return err
		}
		s.answers = append(s.answers, a)
	case "call":
		c := &call{section: sec}
		name, args, _ := strings.Cut(sec.rest, " ")
		c.tool = name
		if args = strings.TrimSpace(args + "\n" + sec.text()); args == "" {
			args = "{}"
		}
		if name == "" || !strings.HasPrefix(args, "{") || !json.Valid([]byte(args)) {
			return fmt.Errorf("a call is the name of a tool and its arguments as a JSON object")
		}
		c.args = json.RawMessage(args)
		s.calls = append(s.calls, c)
	case "result", "error":
		c, err := s.last(sec.keyword)
		if err != nil {
			return err
		}
		if c.expect != nil {
			return fmt.Errorf("the call in line %d has a %s already", c.line, c.expect.keyword)
		}
		if len(c.fileChecks) > 0 {
			return fmt.Errorf("%s stands right behind its call", sec.keyword)
		}
		if sec.keyword == "result" && sec.rest != "" {
			if len(sec.body) > 0 {
				return fmt.Errorf("a result stands behind the word or in the lines below, and not both")
			}
			sec.body = []string{sec.rest}
		}
		if sec.keyword == "error" && (sec.rest == "" || strings.ContainsRune(sec.rest, ' ')) {
			return fmt.Errorf("an error has a kind, such as not_found or TOOL_FAILED, and its text in the lines below")
		}
		c.expect = &sec
	case "has", "gone":
		c, err := s.last(sec.keyword)
		if err != nil {
			return err
		}
		if err := checkFile(sec.rest); err != nil {
			return err
		}
		c.fileChecks = append(c.fileChecks, sec)
	default:
		return fmt.Errorf("there is no word %.40q; the words are %s", sec.keyword, strings.Join(keywords, ", "))
	}
	return nil
}

// last returns the call that was read before. It is an error if there is none, because a line
// with the keyword word belongs to a call.
func (s *Script) last(word string) (*call, error) {
	if len(s.calls) == 0 {
		return nil, fmt.Errorf("%s stands before the first call", word)
	}
	return s.calls[len(s.calls)-1], nil
}

func (s *Script) allow(sec section) error {
	what, of, _ := strings.Cut(sec.rest, " ")
	switch {
	case what == "files" && (of == "" || of == "rw"):
		s.mayRead, s.mayWrite = true, s.mayWrite || of == "rw"
		return nil
	case what == "host" && of != "":
		r, err := network.ParseRule(of)
		s.hosts = append(s.hosts, r)
		return err
	}
	return fmt.Errorf("it is one of: allow files, allow files rw, allow host HOST")
}

// checkFile returns an error if a file in a test cannot have the name.
func checkFile(name string) error {
	if name == "" || strings.Contains(name, `\`) || path.Clean(name) != name || !filepath.IsLocal(filepath.FromSlash(name)) || name == "." {
		return fmt.Errorf("%.80q is not the name of a file below the directory of the test", name)
	}
	return nil
}

// replacement is a new text for a range of lines.
type replacement struct {
	from, to int // numbers of lines, from 1; to is the first line after the range
	lines    []string
}

// replace records new lines in the place of the section old. If old is nil, the lines are
// inserted before line at.
func (s *Script) replace(old *section, at int, with []string) {
	r := replacement{at, at, with}
	if old != nil {
		r.from, r.to = old.line, old.end
	}
	s.replaces = append(s.replaces, r)
}

// update returns the file with the results of the last run in the place of expectations
// that were not met. Other lines stay; each line ends with a newline.
func (s *Script) update() []byte {
	var out bytes.Buffer
	line := 1
	slices.SortStableFunc(s.replaces, func(a, b replacement) int { return a.from - b.from })
	for _, r := range s.replaces {
		for ; line < r.from; line++ {
			out.WriteString(s.lines[line-1] + "\n")
		}
		for _, text := range r.lines {
			out.WriteString(text + "\n")
		}
		line = max(line, r.to)
	}
	for ; line <= len(s.lines); line++ {
		out.WriteString(s.lines[line-1] + "\n")
	}
	return out.Bytes()
}

// indentLines returns the lines of a text, indented as the body of a section.
func indentLines(text string) (out []string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if line != "" {
			line = "    " + line
		}
		out = append(out, line)
	}
	return out
}
