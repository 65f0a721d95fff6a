package offline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/tool"
)

// Limits of a request. What exceeds them is not carried out, and the answer says so.
const (
	maxPhrases     = 40
	maxPromptBytes = 256 << 10
)

// phrase is one part of a request.
type phrase struct {
	text    string
	actions []action // alternative calls for the phrase, the best first; none: the phrase is not understood
}

// action is one call of a tool.
type action struct {
	tool string
	path string          // file that a call of a file tool is about; empty: none, or the person has written args
	args json.RawMessage // an object
}

// newAction returns an action with arguments, each a name and a value. They keep their order. An
// empty path or filter is left out.
func newAction(name string, args ...any) action {
	a := action{tool: name}
	var fields []string
	for i := 0; i < len(args); i += 2 {
		if args[i] == "path" {
			a.path = args[i+1].(string)
		}
		if args[i+1] != "" || args[i] != "path" && args[i] != "file_filter" {
			fields = append(fields, fmt.Sprintf("%q:%s", args[i], tool.Marshal(args[i+1])))
		}
	}
	a.args = json.RawMessage("{" + strings.Join(fields, ",") + "}")
	return a
}

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
	usage   string // main form, for answers; empty: another phrase has it
	pattern func() *regexp.Regexp
	empty   int // number of the argument that may be an empty text, from 1; zero: none
	actions func(args []string) []action
}{
	{"list files [in DIR]", form(`(?:list|ls|show)(?: (?:all|the|me))* files(?: in W)?`), 0, list},
	{"", form(`(?:list|ls)(?: W)?`), 0, list},
	{"read FILE", form(`(?:show|read|cat|open)(?: (?:me|the|contents|of|file))* W`), 0, func(args []string) []action {
		return []action{newAction("file_read", "path", strings.TrimPrefix(args[0], "@"))} // chats name a file with @
	}},
	{"find files GLOB [in DIR]", form(`(?:find|search|grep)(?: all)* files(?: named)? L(?: in W)?`), 0, func(args []string) []action {
		return []action{newAction("glob", "pattern", args[0], "path", args[1])}
	}},
	{"find TEXT [in GLOB]", form(`(?:find|search|grep)(?: for)? T in(?: the)?(?: file)? W`), 0, func(args []string) []action {
		filter, dir := args[1], ""
		if filter == "." || filter == ".." || strings.HasSuffix(filter, "/") {
			filter, dir = "", filter
		}
		return []action{newAction("grep", "pattern", args[0], "fixed_strings", true, "file_filter", filter, "path", dir)}
	}},
	{"", form(`(?:find|search|grep)(?: for)? T`), 0, func(args []string) []action {
		return []action{newAction("grep", "pattern", args[0], "fixed_strings", true)}
	}},
	{"replace A with B in FILE", form(`(?:replace|change) L with T in(?: the)?(?: file)? W`), 2, replace},
	{"", form(`(?:replace|change) L to T in(?: the)?(?: file)? W`), 2, replace},
	{"write TEXT to FILE", form(`(?:write|save) T to W`), 1, func(args []string) []action {
		return []action{newAction("file_write", "path", args[1], "content", args[0])}
	}},
	{"run COMMAND", form(`run (.+)`), 0, func(args []string) []action { return []action{newAction("bash", "command", args[0])} }},
	// The call is for tools without a phrase of their own.
	{"call TOOL [with {JSON}]", form(`call W(?: with (\S.*))?`), 0, func(args []string) []action {
		input := cmp.Or(args[1], "{}")
		if !strings.HasPrefix(input, "{") || !json.Valid([]byte(input)) {
			return nil
		}
		return []action{{tool: args[0], args: json.RawMessage(input)}}
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
	return []action{newAction("ls", "path", dir), newAction("glob", "pattern", "*", "path", dir)}
}

func replace(args []string) []action {
	return []action{newAction("file_edit", "path", args[2], "old_string", args[0], "new_string", args[1], "replace_all", true)}
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
