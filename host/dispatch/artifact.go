package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

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

// checkRead refuses a call of the built-in file_read that names no path and no artifact, or both.
// It keeps an artifact for readArtifact: the host answers, because no guest gets the session's log.
func (p *pending) checkRead(entry *tool.Entry) error {
	var args artifactArgs
	if entry.Name != "file_read" || entry.Module.Origin != tool.OriginBuiltin || p.d.opts.Artifact == nil || json.Unmarshal(p.call.Args, &args) != nil {
		return nil
	}
	switch {
	case args.Path == "" && args.Artifact == "":
		return &refusal{tool.Failed(tool.CodeInvalidArgs, tool.ValidationFailed, "file_read: path is missing; it wants a string, or artifact the ID of an earlier call")}
	case args.Path != "" && args.Artifact != "":
		return &refusal{tool.Failed(tool.CodeInvalidArgs, tool.ValidationFailed, "file_read: path and artifact are set; a call reads one of them")}
	case args.Artifact != "":
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
	out := struct {
		Output     string `json:"output"`
		Lines      int    `json:"lines"`
		NextOffset int    `json:"next_offset,omitempty"`
	}{}
	for rest := text; rest != ""; out.Lines++ {
		_, rest = cutLine(rest)
	}
	from := max(args.Offset, 1)
	if args.Offset < 0 {
		from = max(out.Lines+1+args.Offset, 1)
	}
	if from > out.Lines {
		return tool.Failed("OUT_OF_RANGE", tool.ValidationFailed, "file_read: offset %d is beyond the end of the artifact, which has %d lines", from, out.Lines)
	}
	var page strings.Builder
	n := 1
	for line := ""; text != "" && n < from+cmp.Or(args.Limit, maxArtifactLines) && page.Len() < maxArtifactPage; n++ {
		switch line, text = cutLine(text); {
		case n < from:
		case args.Raw:
			page.WriteString(line + "\n")
		default:
			fmt.Fprintf(&page, "%d: %s\n", n, line)
		}
	}
	if text != "" {
		if out.NextOffset = n; !args.Raw {
			fmt.Fprintf(&page, "[%d more lines; to go on, call file_read with offset=%d]", out.Lines-n+1, n)
		}
	}
	out.Output = page.String()
	return tool.Result{Output: tool.Marshal(out)}
}

// cutLine splits the first line from a text, or its beginning if it is longer than a page shows.
func cutLine(text string) (line, rest string) {
	line, _, ended := strings.Cut(text[:min(len(text), maxArtifactLineBytes+1)], "\n")
	switch n := len(line); {
	case ended:
		return line, text[n+1:]
	case n > maxArtifactLineBytes:
		line = strings.ToValidUTF8(line[:n-1], "") // JSON holds no other text
	}
	return line, text[len(line):]
}
