package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/sdk/go/charset"
	"github.com/stockade-dev/stockade/sdk/go/filename"
	"github.com/stockade-dev/stockade/sdk/go/lines"
	"github.com/stockade-dev/stockade/sdk/go/picture"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// maxWholeRead limits the bytes of a file that filesystem reads; a larger file is an error.
const maxWholeRead = 1 << 20

type filesystemArgs struct {
	Operation string `json:"operation" desc:"What to do." enum:"read,list,exists,metadata"`
	Path      string `json:"path" desc:"The file or directory."`
}

type filesystemResult struct {
	Output   string `json:"output"`
	SHA256   string `json:"sha256,omitempty"`   // of the file that was read
	Count    int    `json:"count,omitempty"`    // number of listed entries
	Exists   *bool  `json:"exists,omitempty"`   // result of exists; nil for other operations
	Type     string `json:"type,omitempty"`     // result of metadata: file, directory, link or other
	Size     *int64 `json:"size,omitempty"`     // result of metadata for a file, in bytes
	Modified string `json:"modified,omitempty"` // result of metadata, as in RFC 3339
	Target   string `json:"target,omitempty"`   // result of metadata for a link
}

func filesystem(ctx context.Context, in filesystemArgs) (filesystemResult, error) {
	if in.Path == "" {
		return filesystemResult{}, tool.InvalidInput("path is empty")
	}
	l, err := locate(in.Path)
	if err != nil {
		return filesystemResult{}, err
	}
	switch in.Operation {
	case "read":
		return readWhole(l)
	case "list":
		list, err := ls(ctx, lsArgs{Path: in.Path, ShowHidden: true, MaxEntries: maxLsEntries})
		return filesystemResult{Output: list.Output, Count: list.Count}, err
	}
	info, err := os.Lstat(l.abs) // a link exists even if its target does not
	if in.Operation == "exists" {
		exists := err == nil
		if !exists && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return filesystemResult{}, l.toolError("look at", err)
		}
		return filesystemResult{Output: fmt.Sprint(exists), Exists: &exists}, nil
	}
	if err != nil {
		return filesystemResult{}, l.toolError("look at", err)
	}
	out := filesystemResult{Type: "other", Modified: info.ModTime().UTC().Format("2006-01-02T15:04:05Z")}
	switch mode := info.Mode(); {
	case isFile(info):
		size := info.Size()
		out.Type, out.Size = "file", &size
	case mode.IsDir():
		out.Type = "directory"
	case mode.Type() == fs.ModeSymlink:
		out.Type = "link"
		out.Target, _ = os.Readlink(l.abs)
	}
	out.Output = fmt.Sprintf("%s: %s, modified %s", l.display(), out.Type, out.Modified)
	if out.Size != nil {
		out.Output = fmt.Sprintf("%s: file of %d bytes, modified %s", l.display(), *out.Size, out.Modified)
	} else if out.Target != "" {
		out.Output += ", leads to " + filename.Show(out.Target)
	}
	return out, nil
}

// readWhole returns the whole text of a file for the operation read. A file that is not UTF-8, or
// is binary, is an error.
func readWhole(l location) (filesystemResult, error) {
	info, err := os.Stat(l.abs)
	if err != nil {
		return filesystemResult{}, l.toolError("read", err)
	}
	if !isFile(info) {
		return filesystemResult{}, l.notAFile("read", info)
	}
	f, err := os.Open(l.abs)
	if err != nil {
		return filesystemResult{}, l.toolError("read", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxWholeRead+1))
	if err != nil {
		return filesystemResult{}, l.toolError("read", err)
	}
	switch {
	case len(content) > maxWholeRead:
		return filesystemResult{}, tool.Coded("TOO_LARGE", tool.InvalidInput("read %s: has %s, more than the limit of %s; file_read reads it in pages", l.display(), humanSize(max(info.Size(), maxWholeRead+1)), humanSize(maxWholeRead)))
	case lines.IsBinary(content) && picture.Mime(content) != "":
		return filesystemResult{}, tool.Coded("BINARY_FILE", tool.Parse("read %s: is an image, and no text; file_read shows it to you", l.display()))
	case charset.Of(content).Form == charset.Binary:
		return filesystemResult{}, checkIsText(charset.Of(content), "read", l)
	case !utf8.Valid(content) || lines.IsBinary(content):
		return filesystemResult{}, tool.Coded("UNKNOWN_ENCODING", tool.Parse("read %s: is no UTF-8; file_read shows other encodings, too", l.display()))
	}
	return filesystemResult{Output: string(content), SHA256: hashOf(content)}, nil
}
