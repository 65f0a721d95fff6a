package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/stockade-dev/stockade/sdk/go/charset"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

const (
	// maxEditBytes limits the bytes of a file, and of its text in UTF-8 before and after an
	// edit; more is an error. They must fit into the memory of the module.
	maxEditBytes    = 8 << 20
	maxReplacements = 100_000 // limits the number of replacements of replace_all; more is an error
)

type editArgs struct {
	Path           string           `json:"path" desc:"The file."`
	OldString      string           `json:"old_string" desc:"The text to replace, exactly as it is in the file."`
	NewString      string           `json:"new_string" desc:"The text to put in its place."`
	ReplaceAll     bool             `json:"replace_all,omitempty" desc:"Replace every occurrence."`
	Encoding       charset.Encoding `json:"encoding,omitzero" desc:"Of a file that is no UTF-8, such as gbk."`
	ExpectedSHA256 string           `json:"expected_sha256,omitempty" desc:"Edit only if the file's present content has this SHA-256, as file_read returned it. Filled in for you."`
}

type editResult struct {
	Output       string `json:"output"`
	Replacements int    `json:"replacements"`
	Diff         string `json:"diff"`
	SHA256       string `json:"sha256"` // of the new content; empty for a file that was not read
}

func fileEdit(_ context.Context, in editArgs) (editResult, error) {
	switch {
	case in.Path == "":
		return editResult{}, tool.InvalidInput("path is empty")
	case in.OldString == "":
		return editResult{}, tool.InvalidInput("old_string is empty; file_write writes a whole file")
	case in.OldString == in.NewString:
		return editResult{}, tool.Coded("NO_CHANGE", tool.InvalidInput("old_string and new_string are the same: nothing would change; give the text as it is and as it is to be"))
	}
	l, err := locate(in.Path)
	if err != nil {
		return editResult{}, err
	}
	t, err := readForEdit(l, in.ExpectedSHA256, in.Encoding)
	if err != nil {
		return editResult{}, err
	}
	changes := findChanges(t.content, in.OldString, in.NewString)
	switch {
	case len(changes) == 0:
		return editResult{}, tool.Coded("NO_MATCH", tool.InvalidInput("old_string does not occur in %s%s", l.display(), nearMiss(t.content, "old_string", strings.Split(in.OldString, "\n"))))
	case len(changes) > 1 && !in.ReplaceAll:
		return editResult{}, tool.Coded("NOT_UNIQUE", tool.InvalidInput("old_string occurs %d times in %s; add context or set replace_all", len(changes), l.display()))
	case len(changes) > 1 && t.unseen:
		return editResult{}, notReadError("old_string occurs %d times in %s", len(changes), l.display())
	case len(changes) > maxReplacements:
		return editResult{}, tool.Coded("TOO_MANY", tool.InvalidInput("old_string occurs more than %d times in %s; replace a longer text", maxReplacements, l.display()))
	}
	e, err := t.edit(changes)
	if err != nil {
		return editResult{}, err
	}
	if err := overwrite(l, e.file); err != nil {
		return editResult{}, l.toolError("edit", err)
	}
	return editResult{
		Output:       fmt.Sprintf("Replaced %s in %s", count(len(changes), "occurrence", "occurrences"), l.display()),
		Replacements: len(changes), Diff: e.diff, SHA256: e.sha256,
	}, nil
}

type textFile struct {
	loc     location
	content []byte // text of the file in UTF-8, without a byte order mark
	enc     charset.Encoding
	sha256  string // hash of the file as it is on disk
	unseen  bool   // set if the conversation has not read the file, see [tool.FindsText]
	eol     string // the most frequent line ending; "": not determined yet
}

// editOutcome is the result of an edit. It is made before the file changes: a call that
// runs out of memory should fail without an effect.
type editOutcome struct {
	content []byte // new content in UTF-8
	file    []byte // new content in the encoding of the file
	diff    string
	sha256  string // of file; empty if the conversation has not read the old one
}

// edit returns the outcome of some changes; the file stays as it is. It is an error if the content
// stays the same, gets too large, gets a NUL byte, or has a character that the encoding lacks.
func (t *textFile) edit(changes []change) (editOutcome, error) {
	size := len(t.content)
	for _, c := range changes {
		size += len(c.text) - (c.end - c.start)
		if strings.Contains(c.text, "\x00") && !bytes.Contains(t.content[c.start:c.end], []byte{0}) {
			return editOutcome{}, nulError("the new text", c.text)
		}
	}
	if size > maxEditBytes {
		return editOutcome{}, t.tooLarge("would have", int64(size))
	}
	e := editOutcome{content: applyChanges(t.content, changes)}
	if size == len(t.content) && bytes.Equal(e.content, t.content) {
		return editOutcome{}, tool.Coded("NO_CHANGE", tool.InvalidInput("%s already reads like that: nothing would change", t.loc.display()))
	}
	var err error
	if e.file, err = encode(t.loc, e.content, t.enc); err != nil {
		return editOutcome{}, err
	}
	if e.diff = unifiedDiff(t.loc.display(), t.content, changes); !t.unseen {
		e.sha256 = hashOf(e.file)
	}
	return e, nil
}

func (t *textFile) tooLarge(what string, size int64) error {
	return tool.Coded("TOO_LARGE", tool.InvalidInput("%s %s %s; edits go up to %s: change it with bash, for example with sed", t.loc.display(), what, humanSize(size), humanSize(maxEditBytes)))
}

// notReadError returns the error for a change of a file that the conversation has not read, and
// that its text does not prove.
func notReadError(format string, args ...any) error {
	return tool.Coded("NOT_READ", tool.InvalidInput(format+", and this conversation has not read it: read it first, then call again", args...))
}

// readForEdit reads a text file. If wantHash is neither empty nor [tool.Unseen], the file must
// have that hash. hint is the encoding from the call, or zero; it is used if the file itself
// does not show one.
func readForEdit(l location, wantHash string, hint charset.Encoding) (*textFile, error) {
	t := &textFile{loc: l, unseen: wantHash == tool.Unseen}
	if t.unseen {
		wantHash = ""
	}
	if err := checkHashText(wantHash); err != nil {
		return nil, err
	}
	info, err := os.Stat(l.abs)
	if err != nil {
		return nil, l.toolError("edit", err)
	}
	if !isFile(info) {
		return nil, l.notAFile("edit", info)
	}
	f, err := os.Open(l.abs)
	if err != nil {
		return nil, l.toolError("edit", err)
	}
	defer f.Close()
	if info.Size() > maxEditBytes {
		return nil, t.tooLarge("has", info.Size())
	}
	raw, err := readHashed(f, info.Size())
	if err != nil {
		return nil, l.toolError("edit", err)
	}
	if len(raw) > maxEditBytes {
		return nil, t.tooLarge("has grown beyond", maxEditBytes)
	}
	t.sha256 = hashOf(raw)
	if err := compareHash(l, t.sha256, wantHash); err != nil {
		return nil, err
	}
	t.enc = charset.Of(raw).Told(hint, raw)
	if err := checkIsText(t.enc, "edit", l); err != nil {
		return nil, err
	}
	if likely := likelyEncodings(t.enc, hint, raw); likely != "" {
		return nil, tool.Coded("UNKNOWN_ENCODING", tool.Parse("edit %s: it is no UTF-8, and may be %s: say which with encoding, or windows-1252 if the text is Western", l.display(), likely))
	}
	var ok bool
	if t.content, ok = t.enc.Decode(raw); !ok {
		return nil, tool.Coded("UNKNOWN_ENCODING", tool.Parse("edit %s: is damaged: it looks like %s and holds bytes that do not fit it, which an edit would lose; convert it first, with iconv for example, or name another encoding", l.display(), t.enc.Form))
	}
	if len(t.content) > maxEditBytes {
		return nil, t.tooLarge("has, as UTF-8,", int64(len(t.content)))
	}
	return t, nil
}

// change replaces content[start:end] of a file by text.
type change struct {
	start, end int
	text       string
}

// findChanges returns the changes that replace the occurrences of old by new, in order and not
// overlapping. If there are more than maxReplacements, it may not return all.
//
// A model writes \n for every line ending, and file_read shows no \r. So text without \r
// also matches \r\n in the file, and the replacement gets the line ending of the replaced
// text. If old has no line break, the replacement gets the most frequent line ending of
// the file. If old has \r, both texts are taken literally.
func findChanges(content []byte, old, new string) []change {
	if strings.Contains(old, "\r") {
		return occurrences(content, old, new)
	}
	newCRLF := toCRLF(new)
	if !strings.Contains(old, "\n") {
		if ending(content) == "\r\n" {
			new = newCRLF
		}
		return occurrences(content, old, new)
	}
	changes := append(occurrences(content, old, new), occurrences(content, toCRLF(old), newCRLF)...)
	slices.SortFunc(changes, func(a, b change) int { return a.start - b.start })
	// The two forms can overlap if old starts or ends with a line break.
	kept := changes[:0]
	for _, c := range changes {
		if len(kept) == 0 || c.start >= kept[len(kept)-1].end {
			kept = append(kept, c)
		} else if last := &kept[len(kept)-1]; c.start == last.start && c.end > last.end {
			*last = c
		}
	}
	return kept
}

// ending returns "\r\n" if most line feeds of a text follow a CR, else "\n".
func ending(content []byte) string {
	crlf := bytes.Count(content, []byte("\r\n"))
	if lf := countLines(content) - crlf; crlf > lf {
		return "\r\n"
	}
	return "\n"
}

func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

func occurrences(content []byte, old, new string) []change {
	var found []change
	for from := 0; ; {
		i := bytes.Index(content[from:], []byte(old))
		if i < 0 {
			return found
		}
		start := from + i
		from = start + len(old)
		found = append(found, change{start, from, new})
		if len(found) > maxReplacements {
			return found
		}
	}
}

func applyChanges(content []byte, changes []change) []byte {
	var out bytes.Buffer
	out.Grow(len(content))
	from := 0
	for _, c := range changes {
		out.Write(content[from:c.start])
		out.WriteString(c.text)
		from = c.end
	}
	out.Write(content[from:])
	return out.Bytes()
}

// lineNumbers matches the number before a line, with its separator, in the output of file_read
// or cat -n.
var lineNumbers = regexp.MustCompile(`^(\d+: | {1,5}\d+\t)`)

// isNumbered reports whether lines were probably copied with their numbers: the first line has
// one, or all others have, since the copy may begin in the middle of a line.
func isNumbered(lines []string) bool {
	n := 0
	for i, line := range lines {
		if !lineNumbers.MatchString(line) && !lineNumbers.MatchString(strings.TrimSpace(line)) {
			if i == 0 {
				continue
			}
			return strings.TrimSpace(line) == "" && i == len(lines)-1 && n > 0
		}
		if n++; i == 0 {
			return true
		}
	}
	return n > 0
}

// nearMiss returns the end of an error: the probable reason why the lines old were not found.
// They may carry line numbers, or differ from the file in white space or in a few characters.
// what is the caller's name for the lines.
func nearMiss(content []byte, what string, old []string) string {
	const nothingSimilar = "; nothing in the file is like it: look at the file again, with file_read or grep"
	first := slices.IndexFunc(old, func(line string) bool { return strings.TrimSpace(line) != "" })
	if first < 0 {
		return nothingSimilar
	}
	if isNumbered(old[first:]) {
		return "; leave out the line numbers, they are not part of the file"
	}
	number, have, want := closest(content, old[:min(len(old), maxCompared)])
	if number == 0 || strings.TrimSpace(have) != strings.TrimSpace(want) {
		if note := lookalikeNote(content, what, strings.Join(old, "\n")); note != "" {
			return note
		}
	}
	if number == 0 {
		want = old[first]
		if number, have = mostSimilarLine(content, want); number == 0 {
			return nothingSimilar
		}
	}
	have, _ = cut([]byte(have), maxDiffLine)
	want, _ = cut([]byte(want), maxDiffLine)
	if strings.TrimSpace(have) == strings.TrimSpace(want) {
		return fmt.Sprintf("; line %d of the file differs in white space: it is %q, and %s has %q", number, have, what, want)
	}
	return fmt.Sprintf("; the nearest is line %d of the file: it is %q, and %s has %q (every character must be the same)", number, have, what, want)
}

// lookalikeNote returns the end of an error if the content holds the text want, but with
// characters that look alike, or with invisible ones. It names the first such character;
// empty: there is none, or only indentation differs.
func lookalikeNote(content []byte, what, want string) string {
	have, wanted := string(content), strings.TrimSpace(visibleForm(want))
	at := strings.Index(visibleForm(have[:min(len(have), maxLookalikeBytes)]), wanted)
	if wanted == "" || at < 0 {
		return ""
	}
	for at > 0 {
		r, size := utf8.DecodeRuneInString(have)
		at, have = at-len(visibleRune(r)), have[size:]
	}
	isBlank := func(r rune) bool { return r == '\n' || visibleRune(r) == "" }
	have, want = strings.TrimLeftFunc(have, isBlank), strings.TrimLeftFunc(want, isBlank)
	for have != "" && want != "" {
		is, size := utf8.DecodeRuneInString(have)
		wanted, wantedSize := utf8.DecodeRuneInString(want)
		if is != wanted {
			break
		}
		have, want = have[size:], want[wantedSize:]
	}
	if want == "" {
		return "" // only white space in front differs
	}
	at = len(content) - len(have)
	start := offsetLinesBefore(content, at, 0)
	line, _ := cut(trimEnding(content[start:offsetAfterLines(content, at, 1)]), maxDiffLine)
	is, wanted := character.FindString(have), character.FindString(want)
	if blank := " \t"; len(bytes.Trim(content[start:at], blank)) == 0 && (strings.Trim(is, blank) == "" || strings.Trim(wanted, blank) == "") {
		return "" // only the indentation differs
	}
	return fmt.Sprintf("; line %d of the file is %q: it has %q %U where %s has %q %U", 1+countLines(content[:at]), line, is, []rune(is), what, wanted, []rune(wanted))
}

// maxLookalikeBytes limits the part of a file that is compared by appearance, which is slow:
// the rest of the file is not searched.
const maxLookalikeBytes = 1 << 20

// character matches the first character of a text, with its accents.
var character = regexp.MustCompile(`(?s)^.\pM*`)

// visibleForm returns the same text for texts that look alike, such as those with other quotes
// or dashes. Its result has line feeds, but no other white space and no invisible characters.
func visibleForm(text string) string {
	var out strings.Builder
	for _, r := range text {
		out.WriteString(visibleRune(r))
	}
	return out.String()
}

// visibleRune is visibleForm for one character.
func visibleRune(r rune) string {
	switch {
	case r == '\n' || r > ' ' && r < utf8.RuneSelf:
		return string(r)
	case unicode.IsSpace(r) || unicode.In(r, unicode.C, unicode.Variation_Selector):
		return ""
	case strings.ContainsRune("‘’‚‛′´ʼ", r):
		return "'"
	case strings.ContainsRune("“”„‟″«»", r):
		return `"`
	case r == '−' || unicode.Is(unicode.Pd, r):
		return "-"
	}
	return strings.ReplaceAll(norm.NFKD.String(string(r)), " ", "")
}

// maxCompared limits the number of wanted lines that closest compares with the file; the
// others are ignored.
const maxCompared = 50

// closest finds the place of the content where most lines, but not all, are equal to the wanted
// lines. It returns the first line there that differs: its number, its text, and the wanted text.
// number is 0 if there is no such place; empty lines do not count.
func closest(content []byte, lines []string) (number int, have, want string) {
	best, first := 0, 1
	for at := 0; at < len(content); at, first = offsetAfterLines(content, at, 1), first+1 {
		same, other, otherAt := 0, -1, 0
		pos := at
		for i, line := range lines {
			next := offsetAfterLines(content, pos, 1)
			if pos < len(content) && string(trimEnding(content[pos:next])) == line {
				if line != "" {
					same++
				}
			} else if other < 0 {
				other, otherAt = i, pos
			}
			pos = next
		}
		if same > best && other >= 0 {
			best, number, want = same, first+other, lines[other]
			have = string(trimEnding(content[otherAt:offsetAfterLines(content, otherAt, 1)]))
		}
	}
	return number, have, want
}

// mostSimilarLine returns the line whose beginning and end share the most bytes with want, at
// least half of want; number is 0 if there is no such line. Of long lines it compares and
// returns only the beginning.
func mostSimilarLine(content []byte, want string) (number int, have string) {
	want = strings.TrimSpace(want)
	want = want[:min(len(want), maxDiffLine)]
	score, n := (len(want)-1)/2, 0
	for line := range bytes.Lines(content) {
		n++
		text := bytes.TrimRight(line, "\r\n")
		text = text[:min(len(text), 2*maxDiffLine)]
		if s := likeness(strings.TrimSpace(string(text)), want); s > score {
			number, have, score = n, string(text), s
		}
	}
	return number, have
}

func trimEnding(line []byte) []byte {
	text, ended := bytes.CutSuffix(line, []byte("\n"))
	if ended {
		text = bytes.TrimSuffix(text, []byte("\r"))
	}
	return text
}

// likeness returns the number of bytes that two texts share at their beginnings and ends.
func likeness(a, b string) int {
	n := min(len(a), len(b))
	head := 0
	for head < n && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head + tail
}
