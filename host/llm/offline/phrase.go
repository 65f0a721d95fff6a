package offline

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
)

// Limits of a request. What exceeds them is not carried out, and the answer says so.
const (
	maxPhrases     = 40
	maxPromptBytes = 256 << 10
)

// phraseForms holds the main forms of phrases that the planner understands, for its answers.
var phraseForms = []string{
	"list files [in DIR]",
	"read FILE",
	"find TEXT [in GLOB]",
	"find files GLOB [in DIR]",
	"replace A with B in FILE",
	"write TEXT to FILE",
	"run COMMAND",
	"call TOOL [with {JSON}]",
}

// phrase is one part of a request.
type phrase struct {
	text    string
	actions []action // alternative calls for the phrase, the best first; none: the phrase is not understood
}

// action is one call of a tool.
type action struct {
	tool string
	args any // a type from pathArgs to bashArgs, or JSON; structs, so that the arguments keep their order
}

type (
	pathArgs struct {
		Path string `json:"path"`
	}
	globArgs struct {
		Pattern string `json:"pattern"`
		Path    string `json:"path,omitempty"`
	}
	grepArgs struct {
		Pattern      string `json:"pattern"`
		FixedStrings bool   `json:"fixed_strings"`
		FileFilter   string `json:"file_filter,omitempty"`
		Path         string `json:"path,omitempty"`
	}
	editArgs struct {
		Path       string `json:"path"`
		OldString  string `json:"old_string"`
		NewString  string `json:"new_string"`
		ReplaceAll bool   `json:"replace_all"`
	}
	writeArgs struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	bashArgs struct {
		Command string `json:"command"`
	}
)

func (p phrase) understood() bool { return len(p.actions) > 0 }

// choose returns the first action whose tool is offered; false: there is none.
func (p phrase) choose(offered map[string]bool) (action, bool) {
	for _, a := range p.actions {
		if offered[a.tool] {
			return a, true
		}
	}
	return action{}, false
}

// The words of a request. A quoted text is one word, and begins where a word begins. Within double
// quotes, \" \\ \n and \t are escapes. An apostrophe inside of a word is not a quote.
const (
	quotedText = `"(?:\\.|[^"\\])*"|'[^']*'|` + "`[^`]*`"
	word       = `(?:` + quotedText + "|[^\\s\"'`]\\S*)"
)

var (
	parts      = lazy(`(?s)` + quotedText + `|[;\n]|[^\s;]+`) // words and separators
	wholeQuote = lazy(`(?s)^(?:` + quotedText + `)$`)
	unescape   = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, "\n", `\t`, "\t")
	politeness = lazy(`(?i)^\s*(?:(?:and|please|first|finally|-)[,:]*\s+)*`)
	fullStop   = lazy("([\\pL\\pN\"'`)])\\.$") // but not the end of a path such as "." or "src/."
)

// forms are the phrases that the planner understands. In a pattern, W is a word, L are words, as few
// as can be, T as many as can be, and a space is any white space. W, L and T are the arguments of
// actions, without their quotes; empty: left out.
var forms = []struct {
	pattern func() *regexp.Regexp
	empty   int // number of the argument that may be an empty text, from 1; zero: none
	actions func(args []string) []action
}{
	{form(`(?:list|ls|show)(?: (?:all|the|me))* files(?: in W)?`), 0, list},
	{form(`(?:list|ls)(?: W)?`), 0, list},
	{form(`(?:show|read|cat|open)(?: (?:me|the|contents|of|file))* W`), 0, func(args []string) []action {
		return []action{{"file_read", pathArgs{strings.TrimPrefix(args[0], "@")}}} // chats name a file with @
	}},
	{form(`(?:find|search|grep)(?: all)* files(?: named)? L(?: in W)?`), 0, func(args []string) []action {
		return []action{{"glob", globArgs{args[0], args[1]}}}
	}},
	{form(`(?:find|search|grep)(?: for)? T in(?: the)?(?: file)? W`), 0, func(args []string) []action {
		search := grepArgs{Pattern: args[0], FixedStrings: true}
		if where := args[1]; where == "." || where == ".." || strings.HasSuffix(where, "/") {
			search.Path = where
		} else {
			search.FileFilter = where
		}
		return []action{{"grep", search}}
	}},
	{form(`(?:find|search|grep)(?: for)? T`), 0, func(args []string) []action {
		return []action{{"grep", grepArgs{Pattern: args[0], FixedStrings: true}}}
	}},
	{form(`(?:replace|change) L with T in(?: the)?(?: file)? W`), 2, replace},
	{form(`(?:replace|change) L to T in(?: the)?(?: file)? W`), 2, replace},
	{form(`(?:write|save) T to W`), 1, func(args []string) []action {
		return []action{{"file_write", writeArgs{Path: args[1], Content: args[0]}}}
	}},
	{form(`run (.+)`), 0, func(args []string) []action { return []action{{"bash", bashArgs{args[0]}}} }},
	// The call is for tools without a phrase of their own.
	{form(`call W(?: with (\S.*))?`), 0, func(args []string) []action {
		input := cmp.Or(args[1], "{}")
		if !strings.HasPrefix(input, "{") || !json.Valid([]byte(input)) {
			return nil
		}
		return []action{{args[0], json.RawMessage(input)}}
	}},
}

// lazy compiles a pattern when it is first used: most starts of the program never do.
func lazy(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

func form(pattern string) func() *regexp.Regexp {
	pattern = strings.NewReplacer(" ", `\s+`, "W", `(`+word+`)`,
		"L", `(`+word+`(?:\s+`+word+`)*?)`, "T", `(`+word+`(?:\s+`+word+`)*)`).Replace(pattern)
	return lazy(`(?is)^` + pattern + `$`)
}

func list(args []string) []action {
	dir := cmp.Or(args[0], ".")
	return []action{
		{"ls", pathArgs{dir}},
		{"glob", globArgs{Pattern: "*", Path: dir}},
	}
}

func replace(args []string) []action {
	return []action{{"file_edit", editArgs{Path: args[2], OldString: args[0], NewString: args[1], ReplaceAll: true}}}
}

// parse splits a request into phrases, at "then", ";" and line ends outside of quotes. cut is set
// if the request exceeds a limit; the phrases are then those of its beginning.
func parse(prompt string) (phrases []phrase, cut bool) {
	if len(prompt) > maxPromptBytes {
		prompt, cut = prompt[:maxPromptBytes], true
	}
	prompt = strings.ToValidUTF8(prompt, "\uFFFD") + "\n"
	begin := 0
	for _, at := range parts().FindAllStringIndex(prompt, -1) {
		part := prompt[at[0]:at[1]]
		if part != ";" && part != "\n" && !strings.EqualFold(strings.Trim(part, ",."), "then") {
			continue
		}
		if text := tidy(prompt[begin:at[0]]); text != "" {
			phrases = append(phrases, understandBoth(text)...)
		}
		begin = at[1]
		if len(phrases) > maxPhrases {
			return phrases[:maxPhrases], true
		}
	}
	return phrases, cut
}

// tidy removes words and marks that only make a request polite or a sentence.
func tidy(s string) string {
	s = politeness().ReplaceAllString(s+" ", "")
	return fullStop().ReplaceAllString(strings.TrimRight(s, " \t\r,;"), "$1")
}

// understandBoth returns the phrase of a text, or two for "A and B" if only so it understands them.
func understandBoth(text string) []phrase {
	whole := []phrase{{text, understand(text)}}
	if whole[0].understood() || len(text) > 4<<10 { // the search takes quadratic time
		return whole
	}
	for _, at := range parts().FindAllStringIndex(text, -1) {
		if !strings.EqualFold(text[at[0]:at[1]], "and") {
			continue
		}
		a, b := tidy(text[:at[0]]), tidy(text[at[1]:])
		if both := []phrase{{a, understand(a)}, {b, understand(b)}}; both[0].understood() && both[1].understood() {
			return both
		}
	}
	return whole
}

// understand returns the alternative calls for one phrase. It returns nil unless it understands
// the whole phrase: half of a request must not be carried out as if it were the whole.
func understand(text string) []action {
	for _, f := range forms {
		args := f.pattern().FindStringSubmatch(text)
		if args == nil {
			continue
		}
		for i, arg := range args[1:] {
			args[i+1] = unquote(arg)
			if arg != "" && args[i+1] == "" && i+1 != f.empty {
				return nil
			}
		}
		return f.actions(args[1:])
	}
	return nil
}

// unquote returns the content of a text that is one quoted text, and any other as it is.
func unquote(text string) string {
	if !wholeQuote().MatchString(text) {
		return text
	}
	inner := text[1 : len(text)-1]
	if text[0] == '"' {
		inner = unescape.Replace(inner)
	}
	return inner
}
