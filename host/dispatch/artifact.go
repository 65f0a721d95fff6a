package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/tool"
)

// Limits of one page of an artifact: lines if the call names no other number, bytes of the page,
// and bytes of a line, which is divided if it is longer.
const (
	maxArtifactLines     = 2000
	maxArtifactPage      = 30 << 10
	maxArtifactLineBytes = 2000
)

// artifactArgs are the arguments of file_read that the host reads for an artifact.
type artifactArgs struct {
	Path     string `json:"path"`
	Artifact string `json:"artifact"`
	Offset   int    `json:"offset"`
	Limit    int    `json:"limit"`
	Raw      bool   `json:"raw"`
}

// checkRead refuses a call of the built-in file_read that does not name one thing to read. The
// host answers a call that names an artifact: no guest gets the log.
func (p *pending) checkRead(entry *tool.Entry) error {
	var args artifactArgs
	if entry.Name != "file_read" || entry.Module.Origin != tool.OriginBuiltin || json.Unmarshal(p.call.Args, &args) != nil {
		return nil
	}
	switch {
	case args.Path == "" && args.Artifact == "" && p.d.opts.Artifact != nil:
		return &refusal{tool.Failed(tool.CodeInvalidArgs, tool.ValidationFailed, "file_read: path is missing; it wants a string, or artifact the ID of an earlier call")}
	case args.Path != "" && args.Artifact != "":
		return &refusal{tool.Failed(tool.CodeInvalidArgs, tool.ValidationFailed, "file_read: path and artifact are set; a call reads one of them")}
	case args.Artifact != "" && p.d.opts.Artifact != nil:
		p.artifact = &args
	}
	return nil
}

// readArtifact answers a call that reads a page of an artifact.
func (p *pending) readArtifact(ctx context.Context) tool.Result {
	args := p.artifact
	text, err := p.d.opts.Artifact(ctx, args.Artifact)
	if err != nil {
		r := tool.Failed(tool.CodeFailed, tool.NotFound, "file_read: artifact %.80q: %v", args.Artifact, err)
		r.Err.Hint = tool.Advise("an artifact has the ID of an earlier call; make the call again if you need its result")
		return r
	}
	count := 0
	for range artifactLines(text) {
		count++
	}
	from := max(args.Offset, 1)
	if args.Offset < 0 {
		from = max(count+1+args.Offset, 1)
	}
	if from > count {
		return tool.Failed("OUT_OF_RANGE", tool.ValidationFailed, "file_read: offset %d is beyond the end of the artifact, which has %d lines", from, count)
	}
	var page strings.Builder
	next, n := from, 0
	for line := range artifactLines(text) {
		if n++; n < from {
			continue
		}
		if n >= from+cmp.Or(args.Limit, maxArtifactLines) || page.Len() >= maxArtifactPage {
			break
		}
		if next++; !args.Raw {
			fmt.Fprintf(&page, "%d: ", n)
		}
		page.WriteString(line + "\n")
	}
	out := struct {
		Output     string `json:"output"`
		Lines      int    `json:"lines"`
		NextOffset int    `json:"next_offset,omitempty"`
	}{Output: page.String(), Lines: count}
	if next <= count {
		if out.NextOffset = next; !args.Raw {
			out.Output += fmt.Sprintf("[%d more lines; to go on, call file_read with offset=%d]", count-next+1, next)
		}
	}
	return tool.Result{Output: tool.Marshal(out)}
}

// artifactLines yields the lines of a text, which may be very many. A line of more than
// maxArtifactLineBytes bytes is divided.
func artifactLines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			for len(line) > maxArtifactLineBytes {
				n := maxArtifactLineBytes
				for !utf8.RuneStart(line[n]) && n > 1 {
					n--
				}
				if !yield(line[:n]) {
					return
				}
				line = line[n:]
			}
			if !yield(line) {
				return
			}
		}
	}
}
