package lines

import (
	"bytes"
	"errors"
	"io"
)

const (
	// MaxLine limits the part of a line that is matched, in bytes; the rest of the line is
	// skipped. Minified files have lines of megabytes.
	MaxLine = 1 << 20
	// BinaryProbe is the number of bytes at the beginning of a file that decide whether the
	// file is binary.
	BinaryProbe = 8000

	// blockBytes is the number of bytes that are read at a time. They fit into the processor's
	// cache.
	blockBytes = 128 << 10
)

// IsBinary reports whether the first BinaryProbe bytes of a file hold a NUL byte. Git decides
// in the same way. head is the beginning of the file.
func IsBinary(head []byte) bool {
	return bytes.IndexByte(head[:min(len(head), BinaryProbe)], 0) >= 0
}

// errUTF16 is returned for a file that begins with the byte order mark of UTF-16: text that
// cannot be searched here.
var errUTF16 = errors.New("the file is text in UTF-16")

func isUTF16(head []byte) bool {
	return bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff"))
}

// Line is a line that matches, or a line of context.
type Line struct {
	Number  uint64 // counted from 1
	Text    []byte // valid UTF-8, at most Chars characters; Emit must not keep it
	Matches bool
	Before  bool // set for context that comes before the next match
	Cut     bool // set if the line has more characters than Text
}

// Work is the work that searching one file took.
type Work struct {
	Read    uint64 // bytes that were read
	Looked  uint64 // bytes that were searched for a text, counted for each text
	Vain    uint64 // places that only began like a text
	Lines   uint64 // lines that were matched with the expression
	Matched uint64 // bytes of these lines
}

// Scanner searches files, one after the other. It is used by one goroutine.
type Scanner struct {
	Pattern *Pattern
	Context int              // lines of context before and after each match
	Chars   int              // most characters of a line that are returned; the rest is cut
	Check   func() error     // called before each read, and now and then in between; its error ends the scan
	Emit    func(Line) error // receives the lines in order; its error ends the scan

	buf       []byte
	sightings []sighting // sightings of the needles in the current block, in the same order

	// For the current file:
	work   Work
	number uint64 // lines before the current line
	before []Line // previous lines that were not emitted, at most Context
	after  int    // lines of context still to be emitted after the previous match
	spent  uint64 // steps since the last check
}

// Work returns the work on the file so far. Check may call it.
func (s *Scanner) Work() Work { return s.work }

// Scan searches a file and returns the work that it took. A binary file has no lines and is no
// error. size is the size of the file in bytes; 0 or less: unknown.
func (s *Scanner) Scan(r io.ReaderAt, size int64) (Work, error) {
	s.work, s.number, s.after, s.spent, s.before = Work{}, 0, 0, 0, s.before[:0]
	if s.buf == nil {
		s.buf = make([]byte, blockBytes)
	}
	var off int64
	have := 0         // bytes at the beginning of buf that are not a whole line yet
	skipping := false // skips the rest of a long line
	for {
		if err := s.Check(); err != nil {
			return s.work, err
		}
		room := s.buf[have:]
		if left := size - off; left > 0 && left < int64(len(room)) {
			room = room[:left] // saves a further read at the end of the file
		}
		n, err := r.ReadAt(room, off)
		if err != nil && err != io.EOF {
			return s.work, err
		}
		end := err == io.EOF || off+int64(n) == size
		s.work.Read += uint64(n)
		data := s.buf[:have+n]
		if off == 0 && IsBinary(data) {
			if isUTF16(data) {
				return s.work, errUTF16
			}
			return s.work, nil
		}
		off += int64(n)
		if skipping {
			i := bytes.IndexByte(data, '\n')
			if i < 0 {
				if have = 0; end {
					return s.work, nil
				}
				continue
			}
			data, skipping = data[i+1:], false
		}
		whole := bytes.LastIndexByte(data, '\n') + 1
		if end {
			whole = len(data)
		}
		if err := s.block(data[:whole], end); err != nil || end {
			return s.work, err
		}
		data = data[whole:]
		if len(data) >= MaxLine+2 { // 2 for the ending
			if err := s.block(data[:MaxLine], false); err != nil {
				return s.work, err
			}
			skipping, have = true, 0
			continue
		}
		if have = len(data); have > len(s.buf)/2 {
			grown := make([]byte, 2*len(s.buf))
			copy(grown, data)
			s.buf = grown
		} else {
			copy(s.buf, data)
		}
	}
}

// block searches whole lines. last is set for the final lines of the file.
func (s *Scanner) block(data []byte, last bool) error {
	s.sightings = s.sightings[:0]
	for pos := 0; pos < len(data); {
		from, to, err := s.next(data, pos)
		if err != nil {
			return err
		}
		if from < 0 {
			if last && s.Context == 0 {
				return nil // nobody needs the number of the lines
			}
			return s.pass(data[pos:])
		}
		if err := s.pass(data[pos:from]); err != nil {
			return err
		}
		for _, l := range s.before {
			if err := s.Emit(l); err != nil {
				return err
			}
		}
		s.before = s.before[:0]
		if err := s.emit(data[from:to], true); err != nil {
			return err
		}
		s.after = s.Context
		pos = to
	}
	return nil
}

func (s *Scanner) emit(line []byte, matches bool) error {
	s.count(line)
	return s.Emit(s.line(line, matches))
}

func (s *Scanner) line(line []byte, matches bool) Line {
	text, more := Cut(content(line), s.Chars)
	return Line{Number: s.number, Text: text, Matches: matches, Cut: more}
}

// count adds the lines in data to number. The final line may have no ending.
func (s *Scanner) count(data []byte) {
	s.number += uint64(bytes.Count(data, []byte("\n")))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		s.number++
	}
}

// pass counts lines that do not match, and emits or stores them as context.
func (s *Scanner) pass(data []byte) error {
	if s.Context == 0 {
		s.count(data)
		return nil
	}
	for ; s.after > 0 && len(data) > 0; s.after-- {
		n := lineEnd(data)
		if err := s.emit(data[:n], false); err != nil {
			return err
		}
		data = data[n:]
	}
	// Only the latest ones are remembered.
	at, kept := len(data), 0
	for ; at > 0 && kept < s.Context; kept++ {
		at = bytes.LastIndexByte(data[:at-1], '\n') + 1
	}
	s.count(data[:at])
	for data = data[at:]; len(data) > 0; {
		n := lineEnd(data)
		s.count(data[:n])
		l := s.line(data[:n], false)
		l.Text, l.Before = bytes.Clone(l.Text), true
		if len(s.before) == s.Context {
			s.before = append(s.before[:0], s.before[1:]...)
		}
		s.before = append(s.before, l)
		data = data[n:]
	}
	return nil
}

// next returns the beginning and the end of the next line that matches; from is -1 if there is
// none.
func (s *Scanner) next(data []byte, pos int) (from, to int, err error) {
	for pos < len(data) {
		from := pos
		if needs := s.Pattern.needles; len(needs) > 0 {
			hit, err := s.nextNeedle(data, pos)
			if err != nil || hit < 0 {
				return -1, -1, err
			}
			from = pos + bytes.LastIndexByte(data[pos:hit], '\n') + 1
			to := hit + lineEnd(data[hit:])
			if s.Pattern.isLiteral && hit+len(needs[0].text) <= from+len(content(data[from:to])) {
				return from, to, nil
			}
		}
		to := from + lineEnd(data[from:])
		line := content(data[from:to])
		s.work.Lines++
		s.work.Matched += uint64(len(line)) + 1
		if err := s.spend((uint64(len(line)) + lineSteps) * max(s.Pattern.steps, leastSteps)); err != nil {
			return -1, -1, err
		}
		if matches, err := s.Pattern.match(line, s.Check); err != nil || matches {
			return from, to, err
		}
		pos = to
	}
	return -1, -1, nil
}

const (
	// lineSteps is the work of beginning a line, in bytes of a line.
	lineSteps = 8
	// leastSteps is the least number of steps for a byte: even with the simplest expression
	// Check is called once in blockBytes.
	leastSteps = maxSteps / blockBytes
)

// spend counts steps, and calls Check once they exceed maxSteps.
func (s *Scanner) spend(steps uint64) error {
	if s.spent += steps; s.spent <= maxSteps {
		return nil
	}
	s.spent = 0
	return s.Check()
}

// nextNeedle returns the position of the first needle at pos or later; -1: none.
func (s *Scanner) nextNeedle(data []byte, pos int) (int, error) {
	needs := s.Pattern.needles
	if len(s.sightings) == 0 {
		for range needs {
			s.sightings = append(s.sightings, unseen)
		}
	}
	first := len(data)
	for i := range needs {
		seen := &s.sightings[i]
		if seen.text < pos {
			before := s.work
			if seen.text = needs[i].index(data, pos, seen, &s.work); seen.text < 0 {
				seen.text = len(data)
			}
			// Searching some sixteen bytes takes as long as matching one. A
			// comparison in vain takes up to maxFold bytes, one by one.
			looked := (s.work.Looked-before.Looked)/16 + (s.work.Vain-before.Vain)*maxFold
			if err := s.spend(looked * leastSteps); err != nil {
				return -1, err
			}
		}
		first = min(first, seen.text)
	}
	if first == len(data) {
		return -1, nil
	}
	return first, nil
}

// lineEnd returns the length of the first line of data, with its ending.
func lineEnd(data []byte) int {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1
	}
	return len(data)
}

// content returns a line without its ending, and at most MaxLine bytes.
func content(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
		if n > 1 && line[n-2] == '\r' {
			line = line[:n-2]
		}
	}
	return line[:min(len(line), MaxLine)]
}
