package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/editor"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/transcript"
	"github.com/stockade-dev/stockade/host/agent"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

const (
	maxMentions      = 32        // files read for one prompt; after them, a note names the next
	maxMentionWords  = 1000      // words with @ of one prompt that are checked; the others stay text
	maxMissing       = 3         // notes about words that name no file; further ones are left out
	maxMentionBytes  = 4096      // bytes of a path; a longer word stays text
	maxMentionedText = 256 << 10 // bytes of texts in a prompt, and at most HistoryCharBudget/2; the rest is cut
	// Number and bytes of the images of one prompt, because each later request sends them
	// again; for others the model is told to call file_read.
	maxMentionedImages     = 8
	maxMentionedImageBytes = 4 << 20
)

// mentions returns the paths that a prompt mentions, in their order and as they are typed:
// @PATH, if the @ begins a word, or @"PATH WITH BLANKS". The file may not exist: mail
// addresses, decorators and handles look the same. A word may end with the punctuation of the
// sentence.
func mentions(prompt string) []string {
	var out []string
	before := ' '
	for i := 0; i < len(prompt) && len(out) < maxMentionWords; {
		r, size := utf8.DecodeRuneInString(prompt[i:])
		i += size
		if r != '@' || !editor.OpensMention(before) {
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

// resolveMention returns the existing path that a word names, absolute or relative to the
// workspace; false: there is none. It also tries the word without the punctuation at its end,
// and replaces ~/ by HOME.
func (a *app) resolveMention(word string) (string, bool) {
	if rest, ok := strings.CutPrefix(word, "~/"); ok && a.s.env("HOME") != "" {
		word = filepath.Join(a.s.env("HOME"), rest)
	}
	for path := word; strings.ContainsFunc(path, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }); {
		name := path
		if !filepath.IsAbs(name) {
			name = filepath.Join(a.Workspace, name)
		}
		// The tool finds out the type of the file and the target of links.
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

// pathLike matches text that a person would write as a path. It does not match most
// handles and decorators.
var pathLike = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w~. -]*(/[\w. -]+)+$|^[\w -]+\.\w{1,5}$`) })

// attach reads the files and directories that a prompt mentions, by calls of file_read in the
// name of the person. It yields the events of these calls, and appends texts and images for
// the model to files. A file that is denied or cannot be read adds none.
func (t *conversation) attach(ctx context.Context, prompt string, files *[]agent.Attachment) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		room := min(maxMentionedText, t.a.Config.HistoryCharBudget/2)
		seen, missing := map[string]bool{}, 0
		var images imageRoom
		for _, word := range mentions(prompt) {
			path, ok := t.a.resolveMention(word)
			if named := strings.TrimRight(word, ".,;:!?)"); !ok && missing < maxMissing && pathLike().MatchString(named) {
				missing++
				t.a.s.note("there is no @%s: it is sent as typed", named)
			}
			if !ok || seen[filepath.Clean(path)] {
				continue
			}
			if len(seen) == maxMentions || room <= 0 {
				t.a.s.note("@%s and the files after it are not read: a prompt takes at most %d files, and %s; the model can read them itself",
					path, maxMentions, humanize.Bytes(maxMentionedText))
				return
			}
			seen[filepath.Clean(path)] = true
			var result tool.Result
			var readResult llm.Message
			for e, err := range t.callWithResult(ctx, &result, "file_read", map[string]any{"path": path}) {
				if m, ok := e.Message(); ok && e.Type == session.TypeToolResult {
					readResult = m
				}
				if !yield(e, err) || err != nil {
					return
				}
			}
			file := images.with(path, result.Images)
			if len(result.Images) == 0 {
				file.Text = mentionText(path, readResult, room)
			}
			if file.Text != "" {
				*files = append(*files, file)
				room -= len(file.Text)
			}
			if ctx.Err() != nil {
				yield(session.Event{}, context.Cause(ctx))
				return
			}
		}
	}
}

// imageRoom counts the images that are attached to a prompt, and their bytes.
type imageRoom struct{ number, bytes int }

// with returns the attachment for the image at path: a text for the model, and the image
// itself if there is room.
func (r *imageRoom) with(path string, images []tool.Image) (file agent.Attachment) {
	for _, img := range images {
		file.Text += fmt.Sprintf("The file %q, which the person names, is an image: %s. ", path, transcript.ImageText(img.Info()))
		if r.number == maxMentionedImages || r.bytes+len(img.Data) > maxMentionedImageBytes {
			file.Text += "It found no room here: file_read shows it to you."
			continue
		}
		r.number, r.bytes = r.number+1, r.bytes+len(img.Data)
		file.Text += fmt.Sprintf("It is image %d of this message.", r.number)
		file.Images = append(file.Images, img)
	}
	return file
}

// mentionText returns the text for the model about a mentioned file or directory, with at most
// room bytes of its content, from the result of file_read; empty if that call failed.
func mentionText(path string, result llm.Message, room int) string {
	_, env, ok := transcript.EnvelopeOf(result)
	var file struct {
		Output string `json:"output"`
		SHA256 string `json:"sha256"` // set for a file, unless it is very large
		Count  int    `json:"count"`  // set for a directory, unless it is empty
	}
	if !ok || !env.Success || json.Unmarshal(env.Result, &file) != nil {
		return ""
	}
	text := fmt.Sprintf("The file %q, which the person names, as file_read gives it:\n", path)
	if first := firstLine(file.Output); file.SHA256 == "" && (file.Count > 0 || !strings.HasPrefix(first, "1: ")) {
		text = fmt.Sprintf("What the directory %q holds, which the person names:\n", path)
		file.Output = quoteLines(strings.TrimPrefix(file.Output[len(first):], "\n"))
	}
	content, cut := cutLines(file.Output, room)
	if cut {
		content += "\n[the rest of it found no room here: file_read has it]"
	}
	return text + content
}

// cutLines returns the whole lines at the beginning of text, at most n bytes. The second
// result reports whether it cut text.
func cutLines(text string, n int) (string, bool) {
	if len(text) <= n {
		return text, false
	}
	return text[:max(strings.LastIndexByte(text[:n], '\n'), 0)], true
}

// quoteLines puts a bar before each line of a text, so that it cannot pretend to end the
// quotation.
func quoteLines(text string) string {
	return "| " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n| ")
}
