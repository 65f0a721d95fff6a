package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/sdk/go/charset"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

const (
	maxReadLines  = 2000
	maxReadOutput = 50 << 10
	// maxHashed limits the size of files that get a hash; larger ones cannot be edited.
	maxHashed = maxEditBytes
	// maxCounted limits the size of files that are read to the end to count their lines; lines
	// of a larger file are not counted, unless the page reaches its end.
	maxCounted = 64 << 20
)

type readArgs struct {
	Path     string           `json:"path,omitempty" desc:"The file."`
	Artifact string           `json:"artifact,omitempty" desc:"Instead of path: the ID of an earlier call, whose whole result is read."`
	Offset   int              `json:"offset,omitempty" desc:"The first line to return, counted from 1 (0 means 1, too); -20 returns the last 20 lines." default:"1"`
	Limit    int              `json:"limit,omitempty" desc:"How many lines to return." min:"1" max:"2000" default:"2000"`
	Encoding charset.Encoding `json:"encoding,omitzero" desc:"Of a file that is no UTF-8, such as gbk."`
	Raw      bool             `json:"raw,omitempty" desc:"Return the text itself, to be copied: without line numbers, long lines whole."`
}

type readResult struct {
	Output     string `json:"output"`
	SHA256     string `json:"sha256,omitempty"`      // of the whole file; absent for a directory and beyond 8 MiB
	Lines      int    `json:"lines,omitempty"`       // lines in a text file; absent beyond 64 MiB, unless its end was reached
	NextOffset int    `json:"next_offset,omitempty"` // offset of the next page; absent after the last page
	Encoding   string `json:"encoding,omitempty"`    // encoding of the file; absent for UTF-8 without a byte order mark
	Count      int    `json:"count,omitempty"`       // number of shown entries of a directory

	images []tool.Image
}

func fileRead(ctx context.Context, in readArgs) (readResult, error) {
	if in.Artifact != "" { // the host answers such calls where there is a session
		return readResult{}, tool.InvalidInput("there are no artifacts here")
	}
	if in.Path == "" {
		return readResult{}, tool.InvalidInput("path is empty")
	}
	l, err := locate(in.Path)
	if err != nil {
		return readResult{}, err
	}
	info, err := os.Stat(l.abs)
	if err != nil {
		return readResult{}, l.toolError("read", err)
	}
	if info.IsDir() {
		list, err := ls(ctx, lsArgs{Path: in.Path, ShowHidden: true, MaxEntries: maxLsEntries})
		if err != nil {
			return readResult{}, err
		}
		return readResult{Output: l.display() + " is a directory:\n" + list.Output, Count: list.Count}, nil
	}
	if !isFile(info) {
		return readResult{}, l.notAFile("read", info)
	}
	f, err := os.Open(l.abs)
	if err != nil {
		return readResult{}, l.toolError("read", err)
	}
	defer f.Close()
	if out, ok, err := readImage(f, info.Size(), l); ok || err != nil {
		return out, err
	}
	p := page{offset: in.Offset, limit: min(max(in.Limit, 1), maxReadLines), raw: in.Raw, size: info.Size(), encoding: in.Encoding}
	if p.offset < 0 {
		if p.offset, err = fromEnd(ctx, f, l, -in.Offset, in.Encoding); err != nil {
			return readResult{}, l.ensureToolError("read", err)
		}
	}
	p.offset = max(p.offset, 1)
	out, err := p.read(ctx, f, l)
	if err != nil {
		return readResult{}, l.ensureToolError("read", err)
	}
	return out, nil
}

// fromEnd returns the number of the line at which the last n lines of a file begin; below 1 if
// the file has fewer lines.
func fromEnd(ctx context.Context, f *os.File, l location, n int, hint charset.Encoding) (int, error) {
	r, _, _, err := openText(f, l, hint)
	if err != nil {
		return 0, err
	}
	lines, err := newLineReader(r, 0).skip(ctx, math.MaxInt)
	if err != nil {
		return 0, err
	}
	_, err = f.Seek(0, io.SeekStart)
	return lines - n + 1, err
}

// openText detects the encoding of a file, and returns a reader of its text as UTF-8, after
// the byte order mark. Windows-1252 is not converted. hint is the encoding from the call. Call
// damaged after reading: it reports whether the text did not fit the encoding.
func openText(f io.Reader, l location, hint charset.Encoding) (text *bufio.Reader, enc charset.Encoding, damaged func() bool, err error) {
	r := bufio.NewReaderSize(f, readerBytes)
	head, err := r.Peek(binaryProbe)
	if err != nil && err != io.EOF {
		return nil, enc, nil, err
	}
	enc = charset.Of(head).Told(hint, head)
	if err := checkIsText(enc, "read", l); err != nil {
		return nil, enc, nil, err
	}
	_, _ = r.Discard(len(enc.Mark)) // never fails: it is in the buffer
	text, damaged = enc.Reader(r)
	return text, enc, damaged, nil
}

// checkIsText returns an error for a binary file, and for UTF-32: we neither show nor edit them.
func checkIsText(e charset.Encoding, op string, l location) error {
	switch e.Form {
	case charset.Binary:
		return tool.Coded("BINARY_FILE", tool.Parse("%s %s: is a binary file (it holds a NUL byte), which is neither shown nor edited", op, l.display()))
	case charset.UTF32:
		return tool.Coded("UNKNOWN_ENCODING", tool.Parse("%s %s: is text in UTF-32, which is neither shown nor edited; convert it first, with iconv for example", op, l.display()))
	}
	return nil
}

// page is the part of a file that one call returns.
type page struct {
	offset, limit int
	raw           bool
	size          int64 // size of the whole file in bytes
	encoding      charset.Encoding
}

func (p page) read(ctx context.Context, f io.Reader, l location) (readResult, error) {
	sum := ""
	if p.size <= maxHashed {
		content, err := readHashed(f, p.size)
		if err != nil {
			return readResult{}, err
		}
		if len(content) <= maxHashed {
			sum = hashOf(content)
		}
		f = io.MultiReader(bytes.NewReader(content), f)
	}
	text, enc, damaged, err := openText(f, l, p.encoding)
	if err != nil {
		return readResult{}, err
	}
	r := newLineReader(text, maxShownLine*utf8.UTFMax)
	if p.raw {
		r.max = maxReadOutput
	}
	number, err := r.skip(ctx, p.offset-1)
	if err != nil {
		return readResult{}, err
	}
	ahead, _ := text.Peek(maxReadOutput)
	enc = enc.Guess(ahead)
	likely := likelyEncodings(enc, p.encoding, ahead)
	out := readResult{Encoding: enc.String()}
	var shown strings.Builder
	for ; number >= p.offset-1; number++ {
		line, length, ending, err := r.next()
		if err == io.EOF {
			break
		} else if err != nil {
			return readResult{}, err
		}
		whole := len(line) == length
		if enc.Form == charset.Windows1252 {
			line = charset.AppendWindows1252(nil, line)
		}
		next := strings.ToValidUTF8(string(line), "\uFFFD") + ending
		if !p.raw {
			next = formatNumbered(number+1, line, whole, length)
		}
		full := shown.Len()+len(next) > maxReadOutput || p.raw && !whole
		if full && p.raw && shown.Len() == 0 {
			return readResult{}, tool.Coded("LINE_TOO_LONG", tool.InvalidInput("line %d of %s has %d bytes, more than the %d that raw returns; without raw its beginning is shown",
				number+1, l.display(), length, maxReadOutput))
		}
		if full || number+1 == p.offset+p.limit {
			out.NextOffset = number + 1
			number++
			break
		}
		shown.WriteString(next)
	}
	if p.size <= maxCounted {
		rest, err := r.skip(ctx, math.MaxInt)
		if err != nil {
			return readResult{}, err
		}
		number += rest
	}
	if p.size <= maxCounted || out.NextOffset == 0 {
		out.Lines = number
	}
	if number > 0 && p.offset > number {
		return readResult{}, tool.Coded("OUT_OF_RANGE", tool.InvalidInput("offset %d is beyond the end of %s, which has %s", p.offset, l.display(), count(number, "line", "lines")))
	}
	out.SHA256 = sum
	if out.Output = shown.String(); !p.raw {
		if number == 0 {
			out.Output = "(empty)"
		}
		out.Output = strings.TrimSuffix(out.Output, "\n") + p.footer(out, enc, damaged(), likely)
	}
	return out, nil
}

// footer returns the line below a page, after a line feed; empty: there is nothing to say. It is
// not for raw pages, where it would belong to the text.
func (p page) footer(out readResult, enc charset.Encoding, damaged bool, likely string) string {
	var notes []string
	if out.NextOffset > 0 {
		more := "more lines follow"
		if out.Lines > 0 {
			more = count(out.Lines-out.NextOffset+1, "more line", "more lines")
		}
		notes = append(notes, fmt.Sprintf("%s; to go on, call file_read with offset=%d", more, out.NextOffset))
	}
	switch {
	case likely != "":
		notes = append(notes, fmt.Sprintf("the file is no UTF-8, and may be %s: read it again with encoding set, and set it for edits, too", likely))
	case enc.Form == charset.Windows1252:
		notes = append(notes, "the file is no UTF-8 and is taken for windows-1252 (or Latin-1); edits keep that")
	case damaged:
		notes = append(notes, "the file is damaged: it looks like "+out.Encoding+" and holds bytes that do not fit it, so no tool edits it; convert it first, with iconv for example")
	case enc.Form != charset.UTF8:
		notes = append(notes, "the file is "+out.Encoding+"; edits keep that")
	}
	if p.size > maxEditBytes {
		notes = append(notes, fmt.Sprintf("it has %s, and no tool edits more than %s", humanSize(p.size), humanSize(maxEditBytes)))
	}
	if notes == nil {
		return ""
	}
	return "\n[" + strings.Join(notes, "; ") + "]"
}

// likelyEncodings names the encodings that a text may have instead of enc, such as "gbk or
// big5", if it was taken for Windows-1252 only as the last resort. It returns "" for another
// enc, with a hint, or if no other encoding is likely. part is a part of the text.
func likelyEncodings(enc, hint charset.Encoding, part []byte) string {
	if enc.Form != charset.Windows1252 || hint.Form != "" {
		return ""
	}
	forms := fmt.Sprint(charset.Likely(part[:min(len(part), maxReadOutput)]))
	return strings.ReplaceAll(strings.Trim(forms, "[]"), " ", " or ")
}

// formatNumbered returns one line with its number and a line feed; a long line is cut. whole is
// set if line is the whole line. length is the number of bytes of the line in the file.
func formatNumbered(number int, line []byte, whole bool, length int) string {
	text, cutHere := cut(line, maxShownLine)
	if !whole || cutHere {
		text += fmt.Sprintf(" [line cut: it has %d bytes]", length)
	}
	return strconv.Itoa(number) + ": " + text + "\n"
}
