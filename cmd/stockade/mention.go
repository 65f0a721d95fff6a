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
	maxMentions      = 32        // files of one prompt that are read
	maxMentionWords  = 1000      // of one prompt that are looked at: a pasted text can have many
	maxMissing       = 3         // words that name no file of which that is said
	maxMentionBytes  = 4096      // of a path
	maxMentionedText = 256 << 10 // bytes of all files of one prompt; file_read gives 50 KiB of each
	// Images of one prompt, and their bytes: they go with each request from then on.
	maxMentionedImages     = 8
	maxMentionedImageBytes = 4 << 20
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

// resolveMention is the path that a word names, if there is something: the word, or what
// is left without the punctuation behind it. A shell would have made the home of ~.
func (a *app) resolveMention(word string) (string, bool) {
	if rest, ok := strings.CutPrefix(word, "~/"); ok && a.s.env("HOME") != "" {
		word = filepath.Join(a.s.env("HOME"), rest)
	}
	for path := word; strings.ContainsFunc(path, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }); {
		name := path
		if !filepath.IsAbs(name) {
			name = filepath.Join(a.Workspace, name)
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

// pathLike is what people mean as a path: most handles, decorators and the like are not.
var pathLike = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w~. -]*(/[\w. -]+)+$|^[\w -]+\.\w{1,5}$`) })

// attach reads the files and directories that a prompt names, by the person's calls
// of file_read, whose events it yields, and adds what the model is to read and to see of
// them to files. What is denied, or cannot be read, stays a word of the prompt.
func (t *conversation) attach(ctx context.Context, prompt string, files *[]agent.Attachment) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		room := min(maxMentionedText, t.a.Config.HistoryCharBudget/2)
		seen, missing := map[string]bool{}, 0
		var images imageRoom
		for _, word := range mentions(prompt) {
			path, ok := t.a.resolveMention(word)
			if named := strings.TrimRight(word, ".,;:!?)"); !ok && missing < maxMissing && pathLike().MatchString(named) {
				missing++
				t.a.s.note("there is no @%s: it goes as it is typed", named)
			}
			if !ok || seen[filepath.Clean(path)] {
				continue
			}
			if len(seen) == maxMentions || room <= 0 {
				t.a.s.note("@%s and what follows is not read: %d files go with a prompt at most, and %s; the model can read them itself",
					path, maxMentions, humanize.Bytes(maxMentionedText))
				return
			}
			seen[filepath.Clean(path)] = true
			var result tool.Result
			var said llm.Message
			for e, err := range t.callWithResult(ctx, &result, "file_read", map[string]any{"path": path}) {
				if m, ok := e.Message(); ok && e.Type == session.TypeToolResult {
					said = m
				}
				if !yield(e, err) || err != nil {
					return
				}
			}
			file := images.with(path, result.Images)
			if len(result.Images) == 0 {
				file.Text = mentionText(path, said, room)
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

// imageRoom counts the images that go with a prompt.
type imageRoom struct{ number, bytes int }

// with is what the model reads of an image that the person names, and the image, if there
// is room for it.
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

// mentionText is what the model reads of a file or a directory that the person names,
// from the result of file_read; empty if that has failed.
func mentionText(path string, result llm.Message, room int) string {
	_, env, ok := transcript.EnvelopeOf(result)
	var file struct {
		Output string `json:"output"`
		SHA256 string `json:"sha256"` // of a file, unless it is very large
		Count  int    `json:"count"`  // of a directory, unless it is empty
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

// cutLines keeps whole lines, of n bytes at most.
func cutLines(text string, n int) (string, bool) {
	if len(text) <= n {
		return text, false
	}
	return text[:max(strings.LastIndexByte(text[:n], '\n'), 0)], true
}

// quoteLines puts a bar before each line: what is quoted so cannot seem to end.
func quoteLines(text string) string {
	return "| " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n| ")
}
