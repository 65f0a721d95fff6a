package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/session"
)

const (
	maxMentions      = 32        // files of one prompt that are read
	maxMentionWords  = 1000      // of one prompt that are looked at: a pasted text can have many
	maxMentionBytes  = 4096      // of a path
	maxMentionedText = 256 << 10 // bytes of all files of one prompt; file_read gives 50 KB of each
)

// mentions are the paths that a prompt names, in their order and as they stand
// there: @path, where the @ begins a word, or @"path with blanks". Whether there are
// such files is another question, which most mail addresses, decorators and handles
// answer with no. What ends the sentence can be part of the last word.
func mentions(prompt string) []string {
	var out []string
	before := ' '
	for i := 0; i < len(prompt) && len(out) < maxMentionWords; {
		r, size := utf8.DecodeRuneInString(prompt[i:])
		i += size
		if r != '@' || !(unicode.IsSpace(before) || strings.ContainsRune(`([{"'`+"`", before)) {
			before = r
			continue
		}
		word, end := prompt[i:], 0
		if quoted, ok := strings.CutPrefix(word, `"`); ok {
			if n := strings.IndexAny(quoted, "\"\n"); n >= 0 && quoted[n] == '"' {
				word, end = quoted[:n], n+2
			}
		}
		if end == 0 {
			if end = strings.IndexFunc(word, unicode.IsSpace); end < 0 {
				end = len(word)
			}
			word = word[:end]
		}
		if word != "" && len(word) <= maxMentionBytes {
			out = append(out, word)
		}
		i, before = i+end, 'x'
	}
	return out
}

// mentioned is the path that a word names, if there is something: the word, or what
// is left without the punctuation behind it.
func (a *app) mentioned(word string) (string, bool) {
	for path := word; strings.ContainsFunc(path, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }); {
		name := path
		if !filepath.IsAbs(name) {
			name = filepath.Join(a.Work, name)
		}
		// What it is and where it leads is for the tool to find out.
		if _, err := os.Lstat(name); err == nil {
			return path, true
		}
		r, size := utf8.DecodeLastRuneInString(path)
		if !strings.ContainsRune(".,;:!?)]}>\"'`*", r) {
			break
		}
		path = path[:len(path)-size]
	}
	return "", false
}

// attach reads the files and directories that a prompt names, by the person's calls
// of file_read, and returns what the model is to read of them. What is denied, or
// cannot be read, is said and stays a word of the prompt.
func (t *turns) attach(ctx context.Context, prompt string) ([]string, error) {
	r := newRenderer(t.a.s, t.a.flags.quiet, t.a.flags.verbose)
	say := func(format string, args ...any) {
		if t.a.flags.json { // the events say it
			return
		}
		t.a.screen.Show(func() { r.line(terminal.Dim, format, args...) })
	}
	var texts []string
	room := min(maxMentionedText, t.a.Config.HistoryCharBudget/2)
	seen := map[string]bool{}
	for _, word := range mentions(prompt) {
		path, ok := t.a.mentioned(word)
		if !ok || seen[filepath.Clean(path)] {
			continue
		}
		if len(seen) == maxMentions || room <= 0 {
			say("@%s and what follows was not read: a prompt carries %d files at most, and %s; the model can read them itself", path, maxMentions, humanBytes(maxMentionedText))
			break
		}
		seen[filepath.Clean(path)] = true
		env, err := t.reads(ctx, path)
		if err != nil {
			return nil, err
		}
		if !env.Success {
			say("@%s was not read: %s", path, env.Error)
			continue
		}
		var file struct {
			Output string `json:"output"`
			Lines  int    `json:"lines"` // 0: so many that they are not counted
			Next   int    `json:"next_offset"`
			Count  int    `json:"count"` // of a directory
			SHA256 string `json:"sha256"`
		}
		if err := json.Unmarshal(env.Result, &file); err != nil {
			return nil, fmt.Errorf("read the result of file_read: %w", err)
		}
		size := plural(file.Lines, "line")
		switch {
		case file.Next > 0 && file.Lines == 0:
			size = "the first " + plural(file.Next-1, "line")
		case file.Next > 0:
			size += fmt.Sprintf(", the first %d of them", file.Next-1)
		}
		text := fmt.Sprintf("The file %q, which the person names, as file_read gives it:\n", path)
		if listing, ok := strings.CutPrefix(file.Output, firstLine(file.Output)+"\n"); ok && file.SHA256 == "" && file.Count > 0 {
			size = plural(file.Count, "name")
			text = fmt.Sprintf("What the directory %q holds, which the person names:\n", path)
			file.Output = barred(listing)
		}
		content, cut := cutLines(file.Output, room)
		if cut {
			content += "\n[the rest of it found no room here: file_read has it]"
		}
		if content == "" {
			content = "[it is empty]"
		}
		room -= len(content)
		texts = append(texts, text+content)
		say("read %s  %s", path, size)
	}
	return texts, nil
}

// reads is what the person's call of file_read comes to.
func (t *turns) reads(ctx context.Context, path string) (env envelope, err error) {
	for e, err := range t.call(ctx, "file_read", map[string]any{"path": path}) {
		if err != nil {
			return env, err
		}
		if t.a.flags.json {
			if err := writeJSONEvent(t.a.s, e); err != nil {
				return env, err
			}
		}
		if m, ok := e.Message(); ok && e.Type == session.TypeToolResult {
			_, env, _ = envelopeOf(m)
		}
	}
	if ctx.Err() != nil {
		return env, context.Cause(ctx)
	}
	return env, nil
}

// cutLines keeps whole lines, of n bytes at most.
func cutLines(text string, n int) (string, bool) {
	if len(text) <= n {
		return text, false
	}
	return text[:max(strings.LastIndexByte(text[:n], '\n'), 0)], true
}

// barred puts a bar before each line: what is quoted so cannot seem to end.
func barred(text string) string {
	return "| " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n| ")
}
