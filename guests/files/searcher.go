package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/charset"
	"github.com/stockade-dev/stockade/sdk/go/lines"
	"github.com/stockade-dev/stockade/sdk/go/search"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

const (
	// firstBatch and maxBatch are the numbers of files that are searched together at first and
	// at most; each batch is twice as large as the one before. The first batches are small
	// because most searches have enough results soon. No batch is so large that the host has
	// nothing to do while the walk collects it.
	firstBatch = 128
	maxBatch   = 1024
	// maxBatchNames limits the bytes of a batch's names; a batch that reaches it is searched.
	maxBatchNames = search.MaxNames / 2
)

// searcher collects the matches of one call. The host searches the files. If the host has no
// search, or refuses the pattern, or encoding is set, the module searches them itself.
type searcher struct {
	expr    string
	context int
	limit   int

	batch      []batchFile // files that wait to be searched
	batchNames []byte      // names of the files in batch, in the form that package search takes
	batchSize  int         // number of files in a full batch
	running    []batchFile // files that the host is searching
	scanner    *lines.Scanner
	encoding   charset.Encoding // encoding that the call gives for files that are not UTF-8; zero: none

	out        strings.Builder
	result     grepResult
	files      int // number of files to search
	unreadable int
	note       string // remark on the only file, such as why it was not searched; empty: none

	file          string // name of the file of the latest line, as it is shown
	printed       uint64 // number of the line of file that was printed last
	contextEnd    uint64 // number of the last context line after the latest match; 0: no match in file yet
	contextBefore []grepLine
}

// grepLine is a line of context before a match. It is printed only together with the match.
type grepLine struct {
	number uint64
	text   string
}

// batchFile names a file by its directory. Most files have no match, and so need no location.
type batchFile struct {
	dir  location // the file itself if name is empty
	name string
}

func (b *batchFile) location() location {
	if b.name == "" {
		return b.dir
	}
	return b.dir.child(b.name)
}

// add adds a file to the batch. If the batch is full, add waits for the results of the
// previous batch and begins the search of this one. It returns errEnough if there is a match
// beyond the limit on matches or on the output.
func (s *searcher) add(ctx context.Context, dir location, name string) error {
	s.batch = append(s.batch, batchFile{dir, name})
	s.batchNames = append(dir.appendChild(s.batchNames, name), 0)
	s.batchSize = max(s.batchSize, firstBatch)
	if len(s.batch) < s.batchSize && len(s.batchNames) < maxBatchNames {
		return nil
	}
	s.batchSize = min(2*s.batchSize, maxBatch)
	return s.begin(ctx)
}

// searchFile searches the only file of a call. An error of the file fails the call. A binary file,
// and without encoding one in UTF-16 or UTF-32, is only noted.
func (s *searcher) searchFile(ctx context.Context, l location) error {
	f, err := os.Open(l.abs)
	if err != nil {
		return err
	}
	head, err := readHead(f, binaryProbe)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	enc := charset.Of(head).Told(s.encoding, head)
	switch form := enc.Form; {
	case form == charset.UTF8 || s.encoding.Form != "" && form != charset.Binary:
	case form == charset.Windows1252:
		if likely := likelyEncodings(enc, s.encoding, head); likely != "" {
			s.note = fmt.Sprintf("%s is no UTF-8, and may be %s: say which with encoding", l.display(), likely)
		}
	case form == charset.Binary:
		s.note = l.display() + " is a binary file, and was not searched"
		return nil
	default:
		s.note = fmt.Sprintf("%s is text in %s, and was not searched; file_read shows it", l.display(), strings.ToUpper(string(form)))
		return nil
	}
	s.batch = append(s.batch, batchFile{dir: l})
	s.batchNames = append(append(s.batchNames, l.abs...), 0)
	if err := s.flush(ctx); err != nil {
		return err
	}
	if s.unreadable > 0 {
		return tool.IO("search %s: it could not be read to the end", l.display())
	}
	return nil
}

// flush searches the files that are still in the batch, and waits for the results.
func (s *searcher) flush(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	return s.collect()
}

// begin waits for the results of the previous batch. Then it has the host search the present
// batch while the walk goes on, or searches it in the module.
func (s *searcher) begin(ctx context.Context) error {
	before := s.running
	if err := s.collect(); err != nil {
		return err
	}
	batch, names := s.batch, s.batchNames
	s.batch, s.batchNames = before[:0], names[:0]
	if len(batch) == 0 {
		return nil
	}
	if s.scanner == nil {
		err := search.ErrUnavailable
		if s.encoding.Form == "" {
			err = search.Begin(search.Query{
				Names: names, Pattern: s.expr, Context: s.context, MaxChars: maxShownLine,
				MaxMatches: s.limit - s.result.Count, MaxText: maxGrepOutput - s.out.Len(),
			})
		}
		if err == nil {
			s.running = batch
			return nil
		}
		if !errors.Is(err, search.ErrInvalid) && !errors.Is(err, search.ErrUnavailable) {
			return err
		}
		pattern, err := lines.Compile(s.expr, 0)
		if err != nil {
			return tool.Coded("BAD_PATTERN", tool.InvalidInput("pattern: %w", err))
		}
		s.scanner = &lines.Scanner{Pattern: pattern, Context: s.context, Chars: maxShownLine, Check: ctx.Err}
	}
	for i := range batch {
		err := s.scan(batch[i].location())
		if err == errEnough {
			return err
		}
		if over := ctx.Err(); over != nil {
			return over
		}
		if err != nil {
			s.unreadable++ // matches in other files still count
		}
	}
	return nil
}

func (s *searcher) collect() error {
	batch := s.running
	if len(batch) == 0 {
		return nil
	}
	s.running = nil
	found, err := search.Collect()
	if err != nil {
		return err
	}
	last := -1
	for _, l := range found.Lines {
		if l.File != last {
			last = l.File
			s.startFile(batch[last].location())
		}
		if err := s.line(l.Number, l.Text, l.Matches, l.Cut); err != nil {
			return err
		}
	}
	s.unreadable += found.Failed
	if found.More {
		return errEnough
	}
	return nil
}

// scan searches a file in the module, without the host. The error is errEnough if there is a match
// beyond the limits; any other error means that the file was not searched to its end.
func (s *searcher) scan(l location) error {
	f, err := os.Open(l.abs)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	s.startFile(l)
	s.scanner.Emit = func(l lines.Line) error { return s.line(l.Number, string(l.Text), l.Matches, l.Cut) }
	if s.encoding.Form == "" || info.Size() > maxEditBytes {
		_, err = s.scanner.Scan(f, info.Size())
		return err
	}
	text, err := readHashed(f, info.Size())
	if plain, ok := charset.Of(text).Told(s.encoding, text).Decode(text); ok { // without this, only ASCII is found
		text = plain
	}
	if err == nil {
		_, err = s.scanner.Scan(bytes.NewReader(text), int64(len(text)))
	}
	return err
}

// startFile notes the file to which the following lines belong.
func (s *searcher) startFile(l location) {
	s.file, s.printed, s.contextEnd, s.contextBefore = l.display(), 0, 0, s.contextBefore[:0]
}

// line handles the next line of a result: a match (matches) or context. cut is set if text is
// only the beginning of the line. A match beyond the limits is errEnough, and is not printed.
func (s *searcher) line(number uint64, text string, matches, cut bool) error {
	if cut {
		text += " [line cut]"
	}
	if !matches {
		if number > s.contextEnd {
			s.contextBefore = append(s.contextBefore, grepLine{number, text})
		} else {
			s.print(number, '-', text)
		}
		return nil
	}
	if s.result.Count == s.limit || s.out.Len() > maxGrepOutput {
		return errEnough
	}
	for _, b := range s.contextBefore {
		s.print(b.number, '-', b.text)
	}
	s.contextBefore = s.contextBefore[:0]
	s.print(number, ':', text)
	if s.contextEnd == 0 {
		s.result.Files++
	}
	s.contextEnd = number + uint64(s.context)
	s.result.Count++
	return nil
}

func (s *searcher) print(number uint64, mark byte, text string) {
	if s.context > 0 && s.result.Count > 0 && (s.printed == 0 || s.printed < number-1) {
		s.out.WriteString("--\n")
	}
	s.printed = number
	fmt.Fprintf(&s.out, "%s%c%d%c %s\n", s.file, mark, number, mark, text)
}
