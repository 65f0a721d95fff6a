package markdown

import (
	"html"
	"regexp"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
)

// newParser returns a parser for one paragraph or, with tables, one table. It parses neither
// HTML, so that text like Vec<String> stays, nor references.
func newParser(tables bool) parser.Parser {
	options := []parser.Option{
		parser.WithBlockParsers(util.Prioritized(parser.NewParagraphParser(), 1000)),
		parser.WithInlineParsers(
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(parser.NewEmphasisParser(), 500),
			util.Prioritized(extension.NewLinkifyParser(), 999),
		),
	}
	if tables {
		options = append(options,
			parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
			parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)))
	}
	return parser.NewParser(options...)
}

var (
	withTables    = sync.OnceValue(func() parser.Parser { return newParser(true) })
	withoutTables = sync.OnceValue(func() parser.Parser { return newParser(false) })
)

// paragraph renders a finished paragraph. Some of its lines may be a table.
func (s *Stream) paragraph(lines []string) {
	p := withTables()
	for _, l := range lines {
		if isDelimiter(l) && strings.Count(l, "|") > maxTableColumns {
			p = withoutTables()
		}
	}
	source := []byte(strings.Join(lines, "\n"))
	s.parsedBytes += len(source)
	for n := p.Parse(text.NewReader(source)).FirstChild(); n != nil; n = n.NextSibling() {
		if n.PreviousSibling() != nil {
			s.separate()
		}
		if t, ok := n.(*extast.Table); ok {
			s.emit(s.table(t, source)...)
			continue
		}
		in := s.inline(source)
		in.children(n, 0)
		s.emit(wrap(in.runs, s.room())...)
	}
}

// heading renders a heading, with an empty row before and after it.
func (s *Stream) heading(level int, source string) {
	s.separate()
	in := s.inline([]byte(source))
	st := bold
	if level == 1 {
		st |= underline
	}
	if !s.o.Color {
		in.add(strings.Repeat("#", level)+" ", 0)
	}
	s.parsedBytes += len(source)
	if n := withoutTables().Parse(text.NewReader(in.source)).FirstChild(); n != nil {
		in.children(n, st)
	}
	s.emit(wrap(in.runs, s.room())...)
	s.separate()
}

// inliner turns the content of a paragraph into runs.
type inliner struct {
	source  []byte
	marks   bool // the Markdown marks are shown as well
	runs    []run
	escaper terminal.Escaper
}

func (s *Stream) inline(source []byte) *inliner { return &inliner{source: source, marks: !s.o.Color} }

// add adds text and makes it visible once more: without the Markdown marks between them,
// several accents may now follow one letter.
func (in *inliner) add(text string, st style) {
	if text != "" {
		in.runs = append(in.runs, run{in.escaper.Visible(text), st})
	}
}

func (in *inliner) children(n ast.Node, st style) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		in.node(c, st)
	}
}

func (in *inliner) node(n ast.Node, st style) {
	switch n := n.(type) {
	case *ast.Text:
		in.add(unescape(n.Segment.Value(in.source)), st)
		switch {
		case n.HardLineBreak():
			in.add("\n", st)
		case n.SoftLineBreak():
			in.add(" ", st)
		}
	case *ast.CodeSpan:
		in.code(strings.ReplaceAll(in.plain(n), "\n", " "), st|cyan)
	case *ast.Emphasis:
		mark, with := "*", italic
		if n.Level > 1 {
			mark, with = "**", bold
		}
		if in.marks {
			in.add(mark, st)
		}
		in.children(n, st|with)
		if in.marks {
			in.add(mark, st)
		}
	case *ast.Link:
		before := len(in.runs)
		in.children(n, st)
		in.target(textOf(in.runs[before:]), n.Destination, n.Title, st)
	case *ast.Image:
		in.add("image: ", st)
		before := len(in.runs)
		in.children(n, st)
		in.target(textOf(in.runs[before:]), n.Destination, n.Title, st)
	case *ast.AutoLink:
		in.add(terminal.Line(string(n.Label(in.source))), st|cyan)
	default:
		in.children(n, st)
	}
}

// target adds the target of a link, unless the shown text of the link is the same.
func (in *inliner) target(shown string, destination, title []byte, st style) {
	where := terminal.Line(string(destination))
	if shown != where {
		if shown != "" {
			in.add(" ", st)
		}
		in.add("(", st)
		in.add(where, st|cyan)
		in.add(")", st)
	}
	if len(title) > 0 {
		in.add(` "`+terminal.Line(string(title))+`"`, st)
	}
}

// code adds a code span. Without colours it has as many backquotes as the text requires.
func (in *inliner) code(text string, st style) {
	mark := ""
	if in.marks {
		for mark = "`"; strings.Contains(text, mark) && len(mark) < 8; mark += "`" {
		}
	}
	in.add(mark+text+mark, st)
}

func (in *inliner) plain(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(in.source))
		}
	}
	return b.String()
}

func textOf(runs []run) string {
	var b strings.Builder
	for _, r := range runs {
		b.WriteString(r.text)
	}
	return b.String()
}

// escapePattern matches an escape or an entity, which stands for another character.
var escapePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\\\\[!-/:-@[-`{-~]|&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});|<br ?/?>")
})

// unescape decodes escapes and entities that stand for a visible character. It turns <br>,
// which is the only way to break a line in a table, into a line end.
func unescape(source []byte) string {
	return escapePattern().ReplaceAllStringFunc(string(source), func(m string) string {
		switch m[0] {
		case '\\':
			return m[1:]
		case '<':
			return "\n"
		}
		if c := html.UnescapeString(m); strings.TrimSpace(c) == c && terminal.Line(c) == c {
			return c
		}
		return m
	})
}
