package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/stockade-dev/stockade/sdk/go/charset"
	"github.com/stockade-dev/stockade/sdk/go/search"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

const (
	maxGrepResults = 1000
	maxGrepContext = 20
	// maxGrepOutput limits the bytes of the output: after them the search ends, so that long
	// lines do not fill the model's context.
	maxGrepOutput = 256 << 10
)

type grepArgs struct {
	Pattern         string           `json:"pattern" desc:"An RE2 regular expression; searched as it is when it is not valid."`
	Path            string           `json:"path,omitempty" desc:"The directory or file to search." default:"."`
	FileFilter      string           `json:"file_filter,omitempty" desc:"Only files that match this glob pattern, such as *.go or src/**/*.ts."`
	FixedStrings    bool             `json:"fixed_strings,omitempty" desc:"Search for the pattern as it is."`
	IgnoreCase      bool             `json:"ignore_case,omitempty" desc:"Take upper and lower case as equal."`
	Context         int              `json:"context,omitempty" desc:"How many lines to show before and after each match." min:"0" max:"20"`
	MaxResults      int              `json:"max_results,omitempty" desc:"How many matching lines to return." min:"1" max:"1000" default:"200"`
	Encoding        charset.Encoding `json:"encoding,omitzero" desc:"Of files that are no UTF-8, such as gbk."`
	IncludeHidden   bool             `json:"include_hidden,omitempty" desc:"Search hidden files and directories too; .git never."`
	IgnoreGitignore bool             `json:"ignore_gitignore,omitempty" desc:"Search what .gitignore excludes too."`
}

type grepResult struct {
	Output    string `json:"output"`
	Count     int    `json:"count"` // number of matching lines in Output
	Files     int    `json:"files"` // number of files with a match in Output
	Truncated bool   `json:"truncated,omitempty"`
	Hint      string `json:"hint,omitempty"`
}

func grep(ctx context.Context, in grepArgs) (grepResult, error) {
	if in.Pattern == "" {
		return grepResult{}, tool.InvalidInput("pattern is empty")
	}
	filter := in.FileFilter
	if !doublestar.ValidatePattern(filter) {
		return grepResult{}, tool.Coded("BAD_PATTERN", tool.InvalidInput("file_filter %q is malformed; it is a pattern for names, such as *.go, in which a backslash quotes special characters", filter))
	}
	l, err := locate(in.Path)
	if err != nil {
		return grepResult{}, err
	}
	info, err := os.Stat(l.abs)
	if err != nil {
		return grepResult{}, l.toolError("search", err)
	}
	expr, note := exprOf(in)
	s := &searcher{
		encoding: in.Encoding,
		expr:     expr,
		context:  min(max(in.Context, 0), maxGrepContext),
		limit:    min(max(in.MaxResults, 1), maxGrepResults),
	}
	s.header(in, note)
	if info.IsDir() {
		w := walker{hidden: in.IncludeHidden, gitignored: in.IgnoreGitignore}
		w.visit = func(dir location, prefix string, entry search.Entry) error {
			if !entry.Type.IsRegular() || !matchesFilter(filter, prefix, entry.Name) {
				return nil
			}
			s.files++
			return s.add(ctx, dir, entry.Name)
		}
		if err = w.walk(ctx, l); err == nil {
			err = s.flush(ctx)
		}
		s.unreadable += w.skipped
	} else if !isFile(info) {
		err = l.notAFile("search", info)
	} else if err = checkSearchable(l); err == nil {
		s.files++
		err = s.searchFile(ctx, l)
	}
	if err == errEnough {
		s.result.Truncated = true
		s.result.Hint = "there are more matches than shown; use a narrower pattern, path or file_filter"
	} else if err != nil {
		return grepResult{}, l.ensureToolError("search", err)
	} else if s.unreadable > 0 {
		s.result.Hint = fmt.Sprintf("%s could not be read, or not be searched because of UTF-16, which file_read shows", count(s.unreadable, "file or directory", "files or directories"))
	} else if s.note != "" {
		s.result.Hint = s.note
	} else if s.result.Count == 0 {
		s.result.Hint = explainNoLines(in, s.files)
	}
	s.result.Output = strings.TrimSuffix(s.out.String(), "\n")
	return s.result, nil
}

// matchesFilter reports whether a file matches the filter; an empty filter matches all. A
// filter without a slash is compared with the name alone.
func matchesFilter(filter, prefix, name string) bool {
	if filter == "" {
		return true
	}
	if strings.Contains(filter, "/") {
		name = prefix + name
	}
	return doublestar.MatchUnvalidated(strings.TrimPrefix(filter, "./"), name)
}

// exprOf returns the regular expression to search for. If the pattern is no valid expression,
// it is searched literally, and note says so; else note is empty.
func exprOf(in grepArgs) (expr, note string) {
	expr = in.Pattern
	if in.FixedStrings {
		expr = regexp.QuoteMeta(expr)
	} else if _, err := syntax.Parse(expr, syntax.Perl); err != nil {
		note = fmt.Sprintf("[literal: %v]", err)
		expr = regexp.QuoteMeta(expr)
	}
	if in.IgnoreCase {
		expr = "(?i:" + expr + ")"
	}
	return expr, note
}

// header writes a line with the options of the call that widen the search, and with note. It
// writes nothing if there are neither.
func (s *searcher) header(in grepArgs, note string) {
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
