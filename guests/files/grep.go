package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

const (
	maxGrepResults = 1000
	maxGrepContext = 20
	// maxGrepOutput keeps many long lines from filling the model's context.
	maxGrepOutput = 256 << 10
	// maxMatchedLine is how much of a line is searched: minified files have
	// lines of megabytes.
	maxMatchedLine = 1 << 20
)

type grepArgs struct {
	Pattern         string `json:"pattern" desc:"An RE2 regular expression; searched as it is when it is not valid."`
	Path            string `json:"path,omitempty" desc:"The directory or file to search." default:"."`
	FileFilter      string `json:"file_filter,omitempty" desc:"Only files that match this glob pattern, such as *.go or src/**/*.ts."`
	FixedStrings    bool   `json:"fixed_strings,omitempty" desc:"Search for the pattern as it is."`
	IgnoreCase      bool   `json:"ignore_case,omitempty" desc:"Take upper and lower case as equal."`
	Context         int    `json:"context,omitempty" desc:"How many lines to show before and after each match." min:"0" max:"20"`
	MaxResults      int    `json:"max_results,omitempty" desc:"How many matching lines to return." min:"1" max:"1000" default:"200"`
	IncludeHidden   bool   `json:"include_hidden,omitempty" desc:"Search hidden files and directories too; .git never."`
	IgnoreGitignore bool   `json:"ignore_gitignore,omitempty" desc:"Search what .gitignore excludes too."`
}

type grepResult struct {
	Output    string `json:"output"`
	Count     int    `json:"count"` // matching lines in Output
	Files     int    `json:"files"` // files with a match
	Truncated bool   `json:"truncated,omitempty"`
	Hint      string `json:"hint,omitempty"`
}

func grep(ctx context.Context, in grepArgs) (grepResult, error) {
	if in.Pattern == "" {
		return grepResult{}, tool.InvalidInput("pattern is empty")
	}
	filter := in.FileFilter
	if !doublestar.ValidatePattern(filter) {
		return grepResult{}, tool.InvalidInput("file_filter %q is malformed", filter)
	}
	l, err := locate(in.Path)
	if err != nil {
		return grepResult{}, err
	}
	info, err := os.Stat(l.abs)
	if err != nil {
		return grepResult{}, l.fault("search", err)
	}
	match, note := matcherOf(in)
	s := &search{
		match:   match,
		context: min(max(in.Context, 0), maxGrepContext),
		limit:   min(max(in.MaxResults, 1), maxGrepResults),
	}
	s.header(in, note)
	if info.IsDir() {
		w := walker{hidden: in.IncludeHidden, gitignored: in.IgnoreGitignore}
		w.visit = func(l location, rel string, entry fs.DirEntry) error {
			if !entry.Type().IsRegular() || !fits(filter, rel) {
				return nil
			}
			err := s.file(ctx, l)
			if err != nil && err != errEnough && ctx.Err() == nil {
				s.unreadable++ // one bad file should not hide the others' matches
				return nil
			}
			return err
		}
		err = w.walk(ctx, l)
		s.unreadable += w.skipped
	} else if !info.Mode().IsRegular() {
		err = tool.InvalidInput("search %s: is neither a file nor a directory", l.shown())
	} else if err = checkSearchable(l); err == nil {
		err = s.file(ctx, l)
	}
	if err == errEnough {
		s.result.Truncated = true
		s.result.Hint = "there are more matches than shown; use a narrower pattern, path or file_filter"
	} else if err != nil {
		return grepResult{}, l.faultOf("search", err)
	} else if s.unreadable > 0 {
		s.result.Hint = fmt.Sprintf("%d files or directories could not be read", s.unreadable)
	}
	s.result.Output = strings.TrimSuffix(s.out.String(), "\n")
	return s.result, nil
}

// fits reports whether the file is one that the filter asks for. A filter
// without a slash is about the name alone.
func fits(filter, rel string) bool {
	if filter == "" {
		return true
	}
	if !strings.Contains(filter, "/") {
		rel = path.Base(rel)
	}
	return doublestar.MatchUnvalidated(strings.TrimPrefix(filter, "./"), rel)
}

// matcherOf returns a function that reports whether a line matches, and a
// note when the pattern is not taken as what it was given as.
func matcherOf(in grepArgs) (match func([]byte) bool, note string) {
	expr := in.Pattern
	if in.FixedStrings {
		expr = regexp.QuoteMeta(expr)
	} else if _, err := regexp.Compile(expr); err != nil {
		note = fmt.Sprintf("[literal: %v]", err)
		expr = regexp.QuoteMeta(expr)
	}
	if in.IgnoreCase {
		expr = "(?i:" + expr + ")"
	}
	re := regexp.MustCompile(expr)
	if literal, whole := re.LiteralPrefix(); whole {
		return func(line []byte) bool { return bytes.Contains(line, []byte(literal)) }, note
	}
	return re.Match, note
}

// search collects the matches of one call.
type search struct {
	match   func([]byte) bool
	context int
	limit   int

	out        strings.Builder
	result     grepResult
	unreadable int
}

func (s *search) header(in grepArgs, note string) {
	var parts []string
	if in.IncludeHidden {
		parts = append(parts, "[+hidden]")
	}
	if in.IgnoreGitignore {
		parts = append(parts, "[+gitignored]")
	}
	if note != "" {
		parts = append(parts, note)
	}
	if len(parts) > 0 {
		s.out.WriteString(strings.Join(parts, " ") + "\n")
	}
}

// file searches one file. errEnough says that the limit is reached and that
// there is at least one more match.
func (s *search) file(ctx context.Context, l location) error {
	f, err := os.Open(l.abs)
	if err != nil {
		return err
	}
	defer f.Close()
	r := newLineReader(f, maxMatchedLine)
	if isBinary(r.head()) {
		return nil
	}
	name := l.shown()
	var before []string // the latest lines that were not printed, at most s.context
	after := 0          // how many lines to print after the latest match
	printed := 0        // the number of the latest line printed
	matches := 0
	for number := 1; ; number++ {
		if number%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		line, _, err := r.next()
		if err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		if !s.match(line) {
			switch {
			case after > 0:
				after--
				s.print(name, number, '-', shownLine(line))
				printed = number
			case s.context > 0:
				if len(before) == s.context {
					before = append(before[:0], before[1:]...)
				}
				before = append(before, shownLine(line))
			}
			continue
		}
		if s.result.Count == s.limit || s.out.Len() > maxGrepOutput {
			return errEnough
		}
		if s.context > 0 && s.result.Count > 0 && (printed == 0 || printed < number-1-len(before)) {
			s.out.WriteString("--\n")
		}
		for i, text := range before {
			s.print(name, number-len(before)+i, '-', text)
		}
		before = before[:0]
		s.print(name, number, ':', shownLine(line))
		printed = number
		after = s.context
		s.result.Count++
		if matches++; matches == 1 {
			s.result.Files++
		}
	}
	return nil
}

func (s *search) print(name string, number int, mark byte, text string) {
	fmt.Fprintf(&s.out, "%s%c%d%c %s\n", name, mark, number, mark, text)
}

func shownLine(line []byte) string {
	text, more := cut(line, maxShownLine)
	if more {
		text += " [line cut]"
	}
	return text
}
