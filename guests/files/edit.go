package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

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
	Path           string `json:"path" desc:"The file."`
	OldString      string `json:"old_string" desc:"The text to replace, exactly as it is in the file."`
	NewString      string `json:"new_string" desc:"The text to put in its place."`
	ReplaceAll     bool   `json:"replace_all,omitempty" desc:"Replace every occurrence."`
	ExpectedSHA256 string `json:"expected_sha256,omitempty" desc:"Edit only if the file's present content has this SHA-256, as file_read returned it. Filled in for you."`
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
		return editResult{}, tool.InvalidInput("old_string and new_string are the same")
	}
	if err := checkHashText(in.ExpectedSHA256); err != nil {
		return editResult{}, err
	}
	l, err := locate(in.Path)
	if err != nil {
		return editResult{}, err
	}
	content, err := readForEdit(l)
	if err != nil {
		return editResult{}, err
	}
	if err := compareHash(l, hashOf(content), in.ExpectedSHA256); err != nil {
		return editResult{}, err
	}
	changes := findChanges(content, in.OldString, in.NewString)
	switch {
	case len(changes) == 0:
		return editResult{}, tool.Coded("NO_MATCH", tool.InvalidInput("old_string does not occur in %s%s", l.shown(), nearMiss(content, in.OldString)))
	case len(changes) > 1 && !in.ReplaceAll:
		return editResult{}, tool.Coded("NOT_UNIQUE", tool.InvalidInput("old_string occurs %d times in %s; add context or set replace_all", len(changes), l.shown()))
	}
	if len(changes) > maxReplacements {
		return editResult{}, tool.Coded("TOO_MANY", tool.InvalidInput("old_string occurs more than %d times in %s; replace a longer text", maxReplacements, l.shown()))
	}
	size := len(content)
	for _, c := range changes {
		size += len(c.text) - (c.end - c.start)
	}
	if size > maxEditBytes {
		return editResult{}, tool.Coded("TOO_LARGE", tool.InvalidInput("edit %s: the result would have %s, more than the limit of %s", l.shown(), humanSize(int64(size)), humanSize(maxEditBytes)))
	}
	// All of the result before the file changes: a call that runs out of memory
	// should fail without an effect.
	edited := apply(content, changes)
	result := editResult{
		Output:       fmt.Sprintf("Replaced %s in %s", count(len(changes), "occurrence", "occurrences"), l.shown()),
		Replacements: len(changes),
		Diff:         unifiedDiff(l.shown(), content, changes),
		SHA256:       hashOf(edited),
	}
	if err := overwrite(l, edited); err != nil {
		return editResult{}, l.fault("edit", err)
	}
	return result, nil
}

func readForEdit(l location) ([]byte, error) {
	info, err := os.Stat(l.abs)
	if err != nil {
		return nil, l.fault("edit", err)
	}
	if !info.Mode().IsRegular() {
		return nil, tool.Coded("NOT_A_FILE", tool.InvalidInput("edit %s: is not a regular file", l.shown()))
	}
	f, err := os.Open(l.abs)
	if err != nil {
		return nil, l.fault("edit", err)
	}
	defer f.Close()
	if info.Size() > maxEditBytes {
		return nil, tool.Coded("TOO_LARGE", tool.InvalidInput("edit %s: has %s, more than the limit of %s", l.shown(), humanSize(info.Size()), humanSize(maxEditBytes)))
	}
	// io.ReadAll would hold several copies of a large file.
	var content bytes.Buffer
	content.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := content.ReadFrom(io.LimitReader(f, maxEditBytes+1)); err != nil {
		return nil, l.fault("edit", err)
	}
	if content.Len() > maxEditBytes {
		return nil, tool.Coded("TOO_LARGE", tool.InvalidInput("edit %s: grew beyond the limit of %s while it was read", l.shown(), humanSize(maxEditBytes)))
	}
	if isBinary(content.Bytes()) {
		return nil, tool.Coded("BINARY_FILE", tool.Parse("edit %s: is a binary file (it holds a NUL byte)", l.shown()))
	}
	return content.Bytes(), nil
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
		crlf := bytes.Count(content, []byte("\r\n"))
		if lf := bytes.Count(content, []byte("\n")) - crlf; crlf > lf {
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

var lineNumbers = regexp.MustCompile(`^\d+: `)

// nearMiss says why old may not have been found: it carries the numbers that
// file_read prints, or differs in white space from a line of the file.
func nearMiss(content []byte, old string) string {
	first := ""
	for line := range strings.Lines(old) {
		if first = strings.TrimSpace(line); first != "" {
			break
		}
	}
	if lineNumbers.MatchString(first) {
		return "; leave out the line numbers, they are not part of the file"
	}
	if first == "" {
		return ""
	}
	number, nearestLine, score := 0, "", 0
	for line := range bytes.Lines(content) {
		number++
		text, _ := cut(bytes.TrimRight(line, "\r\n"), 200)
		if s := likeness(strings.TrimSpace(text), first); s > score {
			score = s
			nearestLine = fmt.Sprintf("; the nearest line is %d: %s", number, text)
		}
	}
	// Half of the text in common is the least that is worth showing.
	if score*2 < len(first) {
		return ""
	}
	return nearestLine + "\n(white space and every other character must be the same)"
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
