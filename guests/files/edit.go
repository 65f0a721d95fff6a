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
	// maxEditBytes bounds the file and the result of an edit, which must both
	// fit into the memory of the module.
	maxEditBytes = 8 << 20
	// maxReplacements bounds the list of what replace_all changes.
	maxReplacements = 100_000
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
	SHA256       string `json:"sha256"` // of the new content
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
		return editResult{}, tool.Coded("NO_MATCH", tool.InvalidInput("old_string does not occur in %s%s", l.shown(), nearMiss(t.content, "old_string", strings.Split(in.OldString, "\n"))))
	case len(changes) > 1 && !in.ReplaceAll:
		return editResult{}, tool.Coded("NOT_UNIQUE", tool.InvalidInput("old_string occurs %d times in %s; add context or set replace_all", len(changes), l.shown()))
	}
	if len(changes) > maxReplacements {
		return editResult{}, tool.Coded("TOO_MANY", tool.InvalidInput("old_string occurs more than %d times in %s; replace a longer text", maxReplacements, l.shown()))
	}
	e, err := t.edit(changes)
	if err != nil {
		return editResult{}, err
	}
	if err := overwrite(l, e.file); err != nil {
		return editResult{}, l.fault("edit", err)
	}
	return editResult{
		Output:       fmt.Sprintf("Replaced %s in %s", count(len(changes), "occurrence", "occurrences"), l.shown()),
		Replacements: len(changes), Diff: e.diff, SHA256: e.sha256,
	}, nil
}

// text is the content of a file that is to be edited.
type text struct {
	l       location
	content []byte // in UTF-8, without a byte order mark
	enc     charset.Encoding
	sha256  string // of the file
	eol     string // that most lines have; "" until it is asked for
}

// edited is all that comes of an edit. It is made before the file changes: a call
// that runs out of memory should fail without an effect.
type edited struct {
	content []byte // in UTF-8
	file    []byte // as it is written
	diff    string
	sha256  string
}

func (t *text) edit(changes []change) (edited, error) {
	size := len(t.content)
	for _, c := range changes {
		size += len(c.text) - (c.end - c.start)
		if strings.Contains(c.text, "\x00") && !bytes.Contains(t.content[c.start:c.end], []byte{0}) {
			return edited{}, holdsNUL("the new text", c.text)
		}
	}
	if size > maxEditBytes {
		return edited{}, t.tooLarge("would have", int64(size))
	}
	e := edited{content: apply(t.content, changes)}
	if size == len(t.content) && bytes.Equal(e.content, t.content) {
		return edited{}, tool.Coded("NO_CHANGE", tool.InvalidInput("%s already reads like that: nothing would change", t.l.shown()))
	}
	var err error
	if e.file, err = encode(t.l, e.content, t.enc); err != nil {
		return edited{}, err
	}
	e.diff, e.sha256 = unifiedDiff(t.l.shown(), t.content, changes), hashOf(e.file)
	return e, nil
}

func (t *text) tooLarge(what string, size int64) error {
	return tool.Coded("TOO_LARGE", tool.InvalidInput("%s %s %s; edits go up to %s: change it with bash, for example with sed", t.l.shown(), what, humanSize(size), humanSize(maxEditBytes)))
}

// readForEdit reads a file, and compares its hash if one is wanted. told is the encoding of a file
// that does not tell its own.
func readForEdit(l location, wantHash string, told charset.Encoding) (*text, error) {
	t := &text{l: l}
	if err := checkHashText(wantHash); err != nil {
		return nil, err
	}
	info, err := os.Stat(l.abs)
	if err != nil {
		return nil, l.fault("edit", err)
	}
	if !isFile(info) {
		return nil, l.notAFile("edit", info)
	}
	f, err := os.Open(l.abs)
	if err != nil {
		return nil, l.fault("edit", err)
	}
	defer f.Close()
	if info.Size() > maxEditBytes {
		return nil, t.tooLarge("has", info.Size())
	}
	raw, err := readHashed(f, info.Size())
	if err != nil {
		return nil, l.fault("edit", err)
	}
	if len(raw) > maxEditBytes {
		return nil, t.tooLarge("has grown beyond", maxEditBytes)
	}
	t.sha256 = hashOf(raw)
	if err := compareHash(l, t.sha256, wantHash); err != nil {
		return nil, err
	}
	t.enc = charset.Of(raw).Told(told, raw)
	if err := refuse(t.enc, "edit", l); err != nil {
		return nil, err
	}
	if likely := likelyOf(t.enc, told, raw); likely != "" {
		return nil, tool.Coded("UNKNOWN_ENCODING", tool.Parse("edit %s: it is no UTF-8, and may be %s: say which with encoding, or windows-1252 if the text is Western", l.shown(), likely))
	}
	var ok bool
	if t.content, ok = t.enc.Decode(raw); !ok {
		return nil, tool.Coded("UNKNOWN_ENCODING", tool.Parse("edit %s: is damaged: it looks like %s and holds what is none, which an edit would lose; convert it first, with iconv for example, or name another encoding", l.shown(), t.enc.Form))
	}
	if len(t.content) > maxEditBytes {
		return nil, t.tooLarge("has, as UTF-8,", int64(len(t.content)))
	}
	return t, nil
}

// change replaces content[start:end] by text.
type change struct {
	start, end int
	text       string
}

// findChanges returns the occurrences of old, in order and not overlapping.
//
// A model writes \n whatever the file has, and file_read shows no \r. So text
// without \r also matches where the file has \r\n, and what is put in its
// place gets the line ending of what it replaces; without a line break in old,
// the one that most lines of the file have. Text with \r means what it says.
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
	// The two forms can overlap where old starts or ends with a line break.
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

// ending is the one that most lines have.
func ending(content []byte) string {
	crlf := bytes.Count(content, []byte("\r\n"))
	if lf := countLines(content) - crlf; crlf > lf {
		return "\r\n"
	}
	return "\n"
}

// toCRLF writes every line break as \r\n.
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

// apply returns the content after the changes.
func apply(content []byte, changes []change) []byte {
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

// lineNumbers is the number that stands before a line as file_read prints it, or cat -n.
var lineNumbers = regexp.MustCompile(`^(\d+: | {1,5}\d+\t)`)

// isNumbered reports whether lines carry numbers: the first, or all that follow where
// that was copied from its middle on.
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

// nearMiss says why lines, which the caller knows by what, may not have been found:
// they carry the numbers that file_read prints, or differ from some of the file, often
// in white space alone.
func nearMiss(content []byte, what string, old []string) string {
	const nothingNear = "; nothing in the file is like it: look at the file again, with file_read or grep"
	first := slices.IndexFunc(old, func(line string) bool { return strings.TrimSpace(line) != "" })
	if first < 0 {
		return nothingNear
	}
	if isNumbered(old[first:]) {
		return "; leave out the line numbers, they are not part of the file"
	}
	number, have, want := closest(content, old[:min(len(old), maxCompared)])
	if number == 0 || strings.TrimSpace(have) != strings.TrimSpace(want) {
		if note := alike(content, what, strings.Join(old, "\n")); note != "" {
			return note
		}
	}
	if number == 0 {
		want = old[first]
		if number, have = likest(content, want); number == 0 {
			return nothingNear
		}
	}
	have, _ = cut([]byte(have), maxDiffLine)
	want, _ = cut([]byte(want), maxDiffLine)
	if strings.TrimSpace(have) == strings.TrimSpace(want) {
		return fmt.Sprintf("; line %d of the file differs in white space: it is %q, and %s has %q", number, have, what, want)
	}
	return fmt.Sprintf("; the nearest is line %d of the file: it is %q, and %s has %q (every character must be the same)", number, have, what, want)
}

// alike finds a text in the content although some characters are invisible or only look the same.
// The result names the first such character, for an error message; empty: nothing was found.
func alike(content []byte, what, want string) string {
	have, wanted := string(content), strings.TrimSpace(looks(want))
	at := strings.Index(looks(have[:min(len(have), maxLooked)]), wanted)
	if wanted == "" || at < 0 {
		return ""
	}
	for at > 0 {
		r, size := utf8.DecodeRuneInString(have)
		at, have = at-len(look(r)), have[size:]
	}
	isBlank := func(r rune) bool { return r == '\n' || look(r) == "" }
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
		return "" // only blanks in front differ
	}
	at = len(content) - len(have)
	start := linesBack(content, at, 0)
	line, _ := cut(trimEnding(content[start:linesOn(content, at, 1)]), maxDiffLine)
	is, wanted := character.FindString(have), character.FindString(want)
	if blank := " \t"; len(bytes.Trim(content[start:at], blank)) == 0 && (strings.Trim(is, blank) == "" || strings.Trim(wanted, blank) == "") {
		return "" // only the indentation differs
	}
	return fmt.Sprintf("; line %d of the file is %q: it has %q %U where %s has %q %U", 1+countLines(content[:at]), line, is, []rune(is), what, wanted, []rune(wanted))
}

// maxLooked limits the bytes of a file that are compared by their looks, which is slow.
const maxLooked = 1 << 20

// character matches a character with its accents.
var character = regexp.MustCompile(`(?s)^.\pM*`)

// looks returns a text as it looks, without blanks and characters that do not show.
func looks(text string) string {
	var out strings.Builder
	for _, r := range text {
		out.WriteString(look(r))
	}
	return out.String()
}

func look(r rune) string {
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

// maxCompared is how many lines of a text are compared with each part of a file.
const maxCompared = 50

// closest finds the part of the content that has most of the lines, and there the
// first line that is another; 0 where no line is the same.
func closest(content []byte, lines []string) (number int, have, want string) {
	best, first := 0, 1
	for at := 0; at < len(content); at, first = linesOn(content, at, 1), first+1 {
		same, other, otherAt := 0, -1, 0
		pos := at
		for i, line := range lines {
			next := linesOn(content, pos, 1)
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
			have = string(trimEnding(content[otherAt:linesOn(content, otherAt, 1)]))
		}
	}
	return number, have, want
}

// likest finds the line that has most in common with one, and half of it at least.
func likest(content []byte, want string) (number int, have string) {
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

// trimEnding leaves out the ending of a line.
func trimEnding(line []byte) []byte {
	text, ended := bytes.CutSuffix(line, []byte("\n"))
	if ended {
		text = bytes.TrimSuffix(text, []byte("\r"))
	}
	return text
}

// likeness is the length of what two texts share at their starts and ends.
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
