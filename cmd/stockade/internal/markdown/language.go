package markdown

import (
	"strings"
	"sync"
)

// language describes the syntax of a programming language, as far as colours need it:
// comments, string literals, numbers and keywords.
type language struct {
	line    []string        // marks that begin a comment up to the end of the line
	blocks  []block         // comments and string literals that may span several lines
	quotes  string          // quotation marks of string literals within a line
	words   map[string]bool // keywords; in lower case if anyCase is set
	anyCase bool            // keywords are matched in any case
	first   map[byte]style  // style of a whole line, by its first character
}

// block is a comment or a string literal that may span several lines.
type block struct { // the block ends at end
	begin, end string
	style      style
}

// isComment reports whether the rest of a line, from the index at on, is a comment.
func (l *language) isComment(text string, at int) bool {
	for _, mark := range l.line {
		// In a shell and in links, a # inside a word does not begin a comment.
		if strings.HasPrefix(text[at:], mark) && (mark != "#" || at == 0 || text[at-1] == ' ') {
			return true
		}
	}
	return false
}

// blockAt returns the block that begins at the beginning of text; false: there is none.
func (l *language) blockAt(text string) (block, bool) {
	for _, b := range l.blocks {
		if strings.HasPrefix(text, b.begin) {
			return b, true
		}
	}
	return block{}, false
}

func set(words string) map[string]bool {
	out := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		out[word] = true
	}
	return out
}

// languages maps the names after the opening marks of a code block to languages. Similar
// languages share their keywords: a wrong colour does no harm.
var languages = sync.OnceValue(func() map[string]*language {
	comment, raw := block{"/*", "*/", dim}, block{"`", "`", green}
	curly := set(`abstract as async await bool boolean break byte case catch chan char class const constexpr continue crate
		default defer delete do double else enum export extends extern false final finally float fn for foreach from func function go goto if
		impl implements import in include inline instanceof int interface internal let long loop map match mod module move mut namespace
		new nil null nullptr of operator override package private protected pub public range readonly ref return select self short
		signed sizeof static string struct super switch template this throw throws trait true try type typedef typename typeof
		undefined union unsafe unsigned use using val var virtual void when where while with yield`)
	script := set(`alias and as assert async await begin break case class continue def del do done elif else elsif end ensure esac
		except export fi finally for from function global if import in is lambda let local loop module nil none not or pass
		raise readonly redo require rescue return self set source switch then trap try undef unless unset until use when while
		with yield True False None true false null`)
	query := set(`add all alter and as asc begin between by case check column commit constraint create cross default delete desc
		distinct drop else end exists foreign from full grant group having if in index inner insert into is join key left like
		limit not null offset on or order outer primary references right rollback select set table then transaction union
		unique update values view when where with`)
	values := set("true false null yes no on off")
	out := map[string]*language{}
	for names, l := range map[string]*language{
		"c h cc cpp c++ cxx hpp java kotlin kt scala swift rust rs csharp cs c# php dart zig proto protobuf groovy solidity": {
			line: []string{"//"}, blocks: []block{comment}, quotes: `"'`, words: curly},
		"go golang js jsx mjs javascript ts tsx typescript node":         {line: []string{"//"}, blocks: []block{comment, raw}, quotes: `"'`, words: curly},
		"css scss less json jsonc json5":                                 {line: []string{"//"}, blocks: []block{comment}, quotes: `"'`, words: values},
		"python py python3 starlark":                                     {line: []string{"#"}, blocks: []block{{`"""`, `"""`, green}, {"'''", "'''", green}}, quotes: `"'`, words: script},
		"sh bash shell zsh fish console ruby rb perl pl r elixir ex nix": {line: []string{"#"}, quotes: `"'`, words: script},
		"make makefile dockerfile docker cmake hcl terraform tf":         {line: []string{"#"}, quotes: `"`, words: script},
		"yaml yml toml ini conf cfg properties":                          {line: []string{"#", ";"}, quotes: `"'`, words: values},
		"sql sqlite mysql postgres postgresql":                           {line: []string{"--"}, blocks: []block{comment}, quotes: `"'`, words: query, anyCase: true},
		"lua haskell hs elm":                                             {line: []string{"--"}, blocks: []block{{"{-", "-}", dim}}, quotes: `"`, words: script},
		"html xml svg vue xhtml":                                         {blocks: []block{{"<!--", "-->", dim}}, quotes: `"`},
		"diff patch udiff":                                               {first: map[byte]style{'+': green, '-': red, '@': bold}},
	} {
		for name := range strings.FieldsSeq(names) {
			out[name] = l
		}
	}
	return out
})
