package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

const (
	maxReadLines  = 2000
	maxReadOutput = 50 << 10
	// maxHashed is up to which size a file is read to its end, for its hash
	// and its number of lines.
	maxHashed = 64 << 20
)

type readArgs struct {
	Path   string `json:"path" desc:"The file."`
	Offset int    `json:"offset,omitempty" desc:"The first line to return, counted from 1." min:"1" default:"1"`
	Limit  int    `json:"limit,omitempty" desc:"How many lines to return." min:"1" max:"2000" default:"2000"`
}

type readResult struct {
	Output     string `json:"output"`
	SHA256     string `json:"sha256,omitempty"`      // of the whole file; absent for a directory and beyond 64 MiB
	Lines      int    `json:"lines,omitempty"`       // in the whole file; absent beyond 64 MiB
	NextOffset int    `json:"next_offset,omitempty"` // where to go on; absent when the file is read to its end
	Count      int    `json:"count,omitempty"`       // entries, of a directory

	images []tool.Image
}

func fileRead(ctx context.Context, in readArgs) (readResult, error) {
	if in.Path == "" {
		return readResult{}, tool.InvalidInput("path is empty")
	}
	l, err := locate(in.Path)
	if err != nil {
		return readResult{}, err
	}
	info, err := os.Stat(l.abs)
	if err != nil {
		return readResult{}, l.fault("read", err)
	}
	if info.IsDir() {
		list, err := ls(ctx, lsArgs{Path: in.Path, ShowHidden: true, MaxEntries: maxLsEntries})
		if err != nil {
			return readResult{}, err
		}
		return readResult{Output: l.shown() + " is a directory:\n" + list.Output, Count: list.Count}, nil
	}
	if !info.Mode().IsRegular() {
		return readResult{}, tool.Coded("NOT_A_FILE", tool.InvalidInput("read %s: is neither a file nor a directory", l.shown()))
	}
	f, err := os.Open(l.abs)
	if err != nil {
		return readResult{}, l.fault("read", err)
	}
	defer f.Close()
	if out, ok, err := readImage(f, info.Size(), l); ok || err != nil {
		return out, err
	}
	page := page{offset: max(in.Offset, 1), limit: min(max(in.Limit, 1), maxReadLines), whole: info.Size() <= maxHashed}
	out, err := page.read(ctx, f, l)
	if err != nil {
		return readResult{}, l.faultOf("read", err)
	}
	return out, nil
}

// page is the part of a file that one call returns.
type page struct {
	offset, limit int
	whole         bool // read on to the file's end
}

func (p page) read(ctx context.Context, f io.Reader, l location) (readResult, error) {
	var sum hash.Hash
	if p.whole {
		sum = sha256.New()
		f = io.TeeReader(f, sum)
	}
	r := newLineReader(f, maxShownLine*4) // the longest UTF-8 character has 4 bytes
	if isBinary(r.head()) {
		return readResult{}, tool.Coded("BINARY_FILE", tool.Parse("read %s: is a binary file (it holds a NUL byte), which file_read does not show", l.shown()))
	}
	var text strings.Builder
	number, next := 0, 0
	for ; ; number++ {
		if number%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return readResult{}, err
			}
		}
		line, length, err := r.next()
		if err == io.EOF {
			break
		} else if err != nil {
			return readResult{}, err
		}
		if number+1 < p.offset || next > 0 {
			continue
		}
		shown := numbered(number+1, line, length)
		if number+1 == p.offset+p.limit || text.Len()+len(shown) > maxReadOutput {
			if next = number + 1; !p.whole {
				break
			}
			continue
		}
		text.WriteString(shown)
	}
	if number > 0 && p.offset > number && next == 0 {
		return readResult{}, tool.Coded("OUT_OF_RANGE", tool.InvalidInput("offset %d is beyond the end of %s, which has %s", p.offset, l.shown(), count(number, "line", "lines")))
	}
	out := readResult{Output: strings.TrimSuffix(text.String(), "\n"), NextOffset: next}
	if p.whole {
		out.Lines = number
		out.SHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	if next > 0 {
		more := "more lines follow"
		if p.whole {
			more = count(number-next+1, "more line", "more lines")
		}
		out.Output += fmt.Sprintf("\n[%s; to go on, call file_read with offset=%d]", more, next)
	}
	return out, nil
}

// numbered writes one line with its number. length is that of the whole line.
func numbered(number int, line []byte, length int) string {
	more := length > len(line)
	if number == 1 {
		line = trimBOM(line)
	}
	text, cutHere := cut(line, maxShownLine)
	if more || cutHere {
		text += fmt.Sprintf(" [line cut: it has %d bytes]", length)
	}
	return strconv.Itoa(number) + ": " + text + "\n"
}
