package offline

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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

// parse splits a request into phrases. cut is set if the request exceeds a limit; the phrases are
// then those of its beginning.
func parse(prompt string) (phrases []phrase, cut bool) {
	if len(prompt) > maxPromptBytes {
		prompt, cut = prompt[:maxPromptBytes], true
	}
	for _, text := range split(strings.ToValidUTF8(prompt, "\uFFFD")) {
		found := []phrase{{text, understand(text)}}
		if !found[0].understood() {
			if both := splitAnd(text); both != nil {
				found = both
			}
		}
		phrases = append(phrases, found...)
		if len(phrases) > maxPhrases {
			return phrases[:maxPhrases], true
		}
	}
	return phrases, cut
}

// split cuts a text at "then", ";" and line ends outside of quotes.
func split(prompt string) []string {
	var parts []string
	begin := 0
	flush := func(end int) {
		if part := tidy(prompt[begin:end]); part != "" {
			parts = append(parts, part)
		}
	}
	for _, w := range scan(prompt) {
		if !w.quoted && (w.text == ";" || w.text == "\n" || strings.EqualFold(strings.Trim(w.text, ",."), "then")) {
			flush(w.start)
			begin = w.end
		}
	}
	flush(len(prompt))
	return parts
}

// splitAnd splits "A and B" if it understands both; else, or for a text of more than 4 KiB, it
// returns nil.
func splitAnd(text string) []phrase {
	if len(text) > 4<<10 {
		return nil // the search takes quadratic time
	}
	for _, w := range scan(text) {
		if w.quoted || !strings.EqualFold(w.text, "and") {
			continue
		}
		a, b := tidy(text[:w.start]), tidy(text[w.end:])
		first, second := phrase{a, understand(a)}, phrase{b, understand(b)}
		if first.understood() && second.understood() {
			return []phrase{first, second}
		}
	}
	return nil
}

// tidy removes words and marks that only make a request polite or a sentence.
func tidy(s string) string {
	s = strings.TrimSpace(s)
	for {
		before := s
		if n := len(s); n > 0 && (s[n-1] == ',' || s[n-1] == ';') {
			s = strings.TrimSpace(s[:n-1])
		}
		for _, w := range []string{"and", "please", "first", "finally", "-"} {
			head, rest, found := strings.Cut(s, " ")
			if found && strings.EqualFold(strings.TrimRight(head, ",:"), w) {
				s = strings.TrimSpace(rest)
			}
		}
		if len(s) < 8 && strings.EqualFold(strings.Trim(s, ",. "), "and") {
			s = ""
		}
		if s == before {
			break
		}
	}
	// Remove the full stop of a sentence, but not the end of a path such as "." or "src/.".
	if head, found := strings.CutSuffix(s, "."); found {
		if r, _ := utf8.DecodeLastRuneInString(head); unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("\"'`)", r) {
			s = head
		}
	}
	return s
}

// word is a word of a phrase, a quoted text, or a separator (";", "\n").
type word struct {
	text       string // without the quotes
	start, end int    // offsets in the text that was scanned, with the quotes included
	quoted     bool
}

// scan cuts a text into words. A quoted text is one word. It begins where a word begins, and
// only if the same mark ends it later. Within double quotes, \" \\ \n and \t are escapes. An
// apostrophe inside of a word is not a quote.
func scan(s string) []word {
	var words []word
	open := make(map[byte]bool) // marks without an end: another search would take quadratic time
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\n' || r == ';':
			words = append(words, word{text: string(r), start: i, end: i + 1})
			i++
		case unicode.IsSpace(r):
			i += size
		default:
			if isMark(s[i]) && !open[s[i]] {
				if text, end, ok := quotedAt(s, i); ok {
					words = append(words, word{text: text, start: i, end: end, quoted: true})
					i = end
					continue
				}
				open[s[i]] = true
			}
			start := i
			for i < len(s) {
				r, size := utf8.DecodeRuneInString(s[i:])
				if unicode.IsSpace(r) || r == ';' {
					break
				}
				i += size
			}
			words = append(words, word{text: s[start:i], start: start, end: i})
		}
	}
	return words
}

func isMark(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// quotedAt parses the quoted text that begins with the mark at s[i]. end is the offset behind
// it. ok is false if no mark ends it.
func quotedAt(s string, i int) (text string, end int, ok bool) {
	mark := s[i]
	var out strings.Builder
	for j := i + 1; j < len(s); j++ {
		c := s[j]
		if mark == '"' && c == '\\' && j+1 < len(s) {
			if at := strings.IndexByte(`"\nt`, s[j+1]); at >= 0 {
				out.WriteByte("\"\\\n\t"[at])
				j++
				continue
			}
		}
		if c == mark {
			next, _ := utf8.DecodeRuneInString(s[j+1:])
			if j+1 == len(s) || unicode.IsSpace(next) || strings.ContainsRune(",.;:!?)]}", next) {
				return out.String(), j + 1, true
			}
		}
		out.WriteByte(c)
	}
	return "", 0, false
}

// understand returns the alternative calls for one phrase. It returns nil unless it understands
// the whole phrase: half of a request must not be carried out as if it were the whole.
func understand(text string) []action {
	words := scan(text)
	if len(words) < 1 || words[0].quoted {
		return nil
	}
	p := &phraseParser{text: text, words: words[1:]}
	switch verb := strings.ToLower(words[0].text); verb {
	case "list", "ls":
		return p.parseList()
	case "show", "read", "cat", "open":
		if verb == "show" {
			if actions := p.fork().parseListFiles(); actions != nil {
				return actions
			}
		}
		return p.parseRead()
	case "find", "search", "grep":
		if actions := p.fork().parseFindFiles(); actions != nil {
			return actions
		}
		return p.parseFind()
	case "replace", "change":
		return p.parseReplace()
	case "write", "save":
		return p.parseWrite()
	case "run":
		return p.parseRun()
	case "call":
		return p.parseCall()
	}
	return nil
}

// phraseParser parses the words after the verb of a phrase.
type phraseParser struct {
	text  string // the phrase
	words []word // words that were not taken or skipped yet
}

// fork returns a copy of the parser, with which a form of a phrase can be tried.
func (p *phraseParser) fork() *phraseParser { return &phraseParser{p.text, p.words} }

// skip removes the next word if it is one of the given words, and reports whether it did.
func (p *phraseParser) skip(any ...string) bool {
	if len(p.words) == 0 || p.words[0].quoted || !slices.ContainsFunc(any, func(w string) bool { return strings.EqualFold(p.words[0].text, w) }) {
		return false
	}
	p.words = p.words[1:]
	return true
}

// skipAll removes all words at the beginning that are among the given words.
func (p *phraseParser) skipAll(any ...string) {
	for p.skip(any...) {
	}
}

// takeSingle removes and returns the remaining words if they are one word or one quoted text;
// false: they are not, or the text is empty.
func (p *phraseParser) takeSingle() (string, bool) {
	if len(p.words) != 1 || p.words[0].text == "" {
		return "", false
	}
	text := p.words[0].text
	p.words = nil
	return text, true
}

// takeUntil removes and returns the words before a separator, and removes the separator. It uses
// the first of separators that occurs, at its first or last occurrence, but not as the first
// word; false: none occurs.
func (p *phraseParser) takeUntil(which occurrence, separators ...string) (string, bool) {
	for _, sep := range separators {
		at := -1
		for i, w := range p.words {
			if !w.quoted && i > 0 && strings.EqualFold(w.text, sep) && (at < 0 || which == last) {
				at = i
			}
		}
		if at > 0 {
			text := p.between(0, at)
			p.words = p.words[at+1:]
			return text, true
		}
	}
	return "", false
}

// occurrence selects one of several occurrences of a separator.
type occurrence int

const (
	first occurrence = iota
	last
)

// between returns the text of p.words[from:to]: the content of a single quoted text, else the text
// as it was written.
func (p *phraseParser) between(from, to int) string {
	if to-from == 1 {
		return p.words[from].text
	}
	return p.text[p.words[from].start:p.words[to-1].end]
}

// takeRest removes and returns all remaining words; false: there is no text.
func (p *phraseParser) takeRest() (string, bool) {
	if len(p.words) == 0 {
		return "", false
	}
	text := p.between(0, len(p.words))
	p.words = nil
	return text, text != ""
}

// parseCall parses "TOOL [with {JSON}]", for tools without a phrase of their own.
func (p *phraseParser) parseCall() []action {
	if len(p.words) == 0 || p.words[0].text == "" {
		return nil
	}
	name := p.words[0].text
	p.words = p.words[1:]
	args := "{}"
	if p.skip("with") {
		args, _ = p.takeRest()
	}
	if len(p.words) > 0 || !strings.HasPrefix(args, "{") || !json.Valid([]byte(args)) {
		return nil
	}
	return []action{{name, json.RawMessage(args)}}
}

// parseList parses "[files [in DIR]]" or "[DIR]" after the verb list.
func (p *phraseParser) parseList() []action {
	if actions := p.fork().parseListFiles(); actions != nil {
		return actions
	}
	dir, ok := p.takeSingle()
	if !ok && len(p.words) > 0 {
		return nil
	}
	return listActions(dir)
}

// parseListFiles parses "[all the] files [in DIR]".
func (p *phraseParser) parseListFiles() []action {
	p.skipAll("all", "the", "me")
	if !p.skip("files") {
		return nil
	}
	if len(p.words) == 0 {
		return listActions("")
	}
	if !p.skip("in") {
		return nil
	}
	dir, ok := p.takeSingle()
	if !ok {
		return nil
	}
	return listActions(dir)
}

func listActions(dir string) []action {
	dir = cmp.Or(dir, ".")
	return []action{
		{"ls", pathArgs{dir}},
		{"glob", globArgs{Pattern: "*", Path: dir}},
	}
}

func (p *phraseParser) parseRead() []action {
	p.skipAll("me", "the", "contents", "of", "file")
	path, ok := p.takeSingle()
	if !ok {
		return nil
	}
	return []action{{"file_read", pathArgs{strings.TrimPrefix(path, "@")}}} // chats name a file with @
}

// parseFindFiles parses "[all] files [named] GLOB [in DIR]".
func (p *phraseParser) parseFindFiles() []action {
	p.skipAll("all")
	if !p.skip("files") {
		return nil
	}
	p.skip("named")
	args, in := globArgs{}, p.fork()
	pattern, ok := in.takeUntil(first, "in")
	if ok {
		args.Path, ok = in.takeSingle()
	} else {
		pattern, ok = p.takeSingle()
	}
	if !ok {
		return nil
	}
	args.Pattern = pattern
	return []action{{"glob", args}}
}

func (p *phraseParser) parseFind() []action {
	p.skip("for")
	args := grepArgs{FixedStrings: true}
	rest := p.fork()
	text, ok := rest.takeUntil(last, "in")
	if ok {
		rest.skipAll("the", "file")
		var where string
		if where, ok = rest.takeSingle(); where == "." || where == ".." || strings.HasSuffix(where, "/") {
			args.Path = where
		} else {
			args.FileFilter = where
		}
	} else {
		text, ok = p.takeRest()
	}
	if !ok || text == "" {
		return nil
	}
	args.Pattern = text
	return []action{{"grep", args}}
}

func (p *phraseParser) parseReplace() []action {
	from, ok := p.takeUntil(first, "with", "to")
	if !ok || from == "" {
		return nil
	}
	to, ok := p.takeUntil(last, "in")
	if !ok {
		return nil
	}
	p.skipAll("the", "file")
	path, ok := p.takeSingle()
	if !ok {
		return nil
	}
	return []action{{"file_edit", editArgs{Path: path, OldString: from, NewString: to, ReplaceAll: true}}}
}

func (p *phraseParser) parseWrite() []action {
	text, ok := p.takeUntil(last, "to")
	if !ok {
		return nil
	}
	path, ok := p.takeSingle()
	if !ok {
		return nil
	}
	return []action{{"file_write", writeArgs{Path: path, Content: text}}}
}

func (p *phraseParser) parseRun() []action {
	command, ok := p.takeRest()
	if !ok {
		return nil
	}
	return []action{{"bash", bashArgs{command}}}
}
