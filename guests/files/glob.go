package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/stockade-dev/stockade/sdk/go/search"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// maxGlobResults limits the number of paths in a result; a hint says that there are more.
const maxGlobResults = 1000

type globArgs struct {
	Pattern string `json:"pattern" desc:"The pattern, with *, ?, [a-z], {a,b} and **."`
	Path    string `json:"path,omitempty" desc:"The directory to search." default:"."`
}

type globResult struct {
	Output    string `json:"output"`
	Count     int    `json:"count"` // number of paths in Output
	Truncated bool   `json:"truncated,omitempty"`
	Hint      string `json:"hint,omitempty"`
}

// errEnough ends a walk or a search that has more results than its limit.
var errEnough = errors.New("enough found")

func glob(ctx context.Context, in globArgs) (globResult, error) {
	pattern := filepath.ToSlash(in.Pattern)
	if pattern == "" {
		return globResult{}, tool.InvalidInput("pattern is empty; ** finds all files")
	}
	if !doublestar.ValidatePattern(pattern) {
		return globResult{}, tool.Coded("BAD_PATTERN", tool.InvalidInput("pattern %q is malformed; quote special characters with a backslash", in.Pattern))
	}
	start := in.Path
	base, rest := doublestar.SplitPattern(pattern)
	if strings.HasPrefix(pattern, "/") || base == ".." || strings.HasPrefix(base, "../") {
		// The pattern has its own start, which is not below path.
		if !strings.HasPrefix(pattern, "/") {
			base = filepath.Join(in.Path, base)
		}
		start, pattern, base = base, rest, "."
	}
	if strings.Contains(base, `\`) {
		base = "." // quoted characters: search everything
	}
	pattern = strings.TrimPrefix(pattern, "./")
	base = strings.TrimPrefix(base, "./")

	root, err := locate(start)
	if err == nil {
		err = root.checkDir("search")
	}
	if err != nil {
		return globResult{}, err
	}
	var found []string
	truncated := false
	w := walker{
		hidden: true,
		visit: func(dir location, prefix string, entry search.Entry) error {
			if !doublestar.MatchUnvalidated(pattern, prefix+entry.Name) {
				return nil
			}
			if len(found) == maxGlobResults {
				truncated = true
				return errEnough
			}
			found = append(found, dir.child(entry.Name).display())
			return nil
		},
		enter: func(path string) bool {
			return base == "." || within(path, base) || within(base, path)
		},
	}
	if err := w.walk(ctx, root); err != nil && err != errEnough {
		return globResult{}, err
	}
	slices.Sort(found)
	out := globResult{Output: strings.Join(found, "\n"), Count: len(found), Truncated: truncated}
	if truncated {
		out.Hint = fmt.Sprintf("only the first %d matches are shown; use a narrower pattern or path", maxGlobResults)
	} else if w.skipped > 0 {
		out.Hint = fmt.Sprintf("%d directories could not be read", w.skipped)
	} else if len(found) == 0 {
		out.Hint = explainNoFiles(pattern, root.display())
	}
	return out, nil
}

// within reports whether path is dir or below dir. Both are separated by slashes.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}
