package repo

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// CommitNode holds the part of a commit that a walk through history needs.
type CommitNode struct {
	ID      ID
	Tree    ID
	Parents []ID  // empty for a commit without parents, or one at which a shallow clone ends
	When    int64 // time of the committer, in seconds since 1970

	graphPos        uint32   // position in the commit-graph plus 1; 0: it is not there
	parentPositions []uint32 // positions of the parents in the commit-graph; nil: not there, or no parents
}

// Commit is a commit.
type Commit struct {
	CommitNode
	Author    Signature
	Committer Signature
	Message   string // message in UTF-8, without empty lines around it
	Cut       bool   // set if the message was cut
}

// Subject returns the first paragraph of the message as one line.
func (c *Commit) Subject() string {
	paragraph, _, _ := strings.Cut(c.Message, "\n\n")
	var words []string
	for line := range strings.Lines(paragraph) {
		if line = strings.TrimSpace(line); line == "" {
			break
		}
		words = append(words, line)
	}
	return strings.Join(words, " ")
}

// Signature names a person and a time: the author of a commit, its committer, or a tagger.
type Signature struct {
	Name, Email string
	When        time.Time // in the person's time zone
}

const (
	maxParents = 1000     // parents of a commit; one with more is an error
	maxMessage = 64 << 10 // bytes of a message; a longer one is cut
)

// Commit reads a commit. A message of more than 64 KiB is cut.
func (r *Repo) Commit(id ID) (*Commit, error) {
	kind, data, cut, err := r.read(id, maxCut)
	if err != nil {
		return nil, err
	}
	if kind != KindCommit {
		return nil, Corrupt("the object %s is a %s and not a commit", id, kind)
	}
	l, rest, ok := r.parseHead(id, data)
	if !ok {
		return nil, Corrupt("the commit %s has no tree, or parents that are no names of objects, or too many", id)
	}
	c := &Commit{CommitNode: *l, Cut: cut}
	text, encoding := string(rest), ""
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		if text = rest; line == "" {
			break
		}
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "author":
			c.Author = signature(value)
		case "committer":
			c.Committer = signature(value)
			c.When = c.Committer.When.Unix()
		case "encoding":
			encoding = strings.ToLower(value)
		}
	}
	if len(text) > maxMessage {
		text, c.Cut = text[:maxMessage], true
	}
	latin := strings.HasPrefix(encoding, "iso-8859-1") || strings.HasPrefix(encoding, "latin")
	c.Message = strings.Trim(utf8Of(text, latin), "\n")
	c.Author.Name, c.Committer.Name = utf8Of(c.Author.Name, latin), utf8Of(c.Committer.Name, latin)
	return c, nil
}

// CommitNode returns the node of a commit: a stored one, or one from the commit-graph, or else
// one from the object. Of these nodes it stores up to maxNodes. It reads only the beginning of
// the object where it can, because a history has thousands of commits.
func (r *Repo) CommitNode(id ID) (*CommitNode, error) {
	if l := r.nodes[id]; l != nil {
		return l, nil
	}
	if at, ok := r.position(id); ok {
		if l := r.nodeAt(at); l != nil {
			return l, nil
		}
	}
	l, err := r.readNode(id)
	if err == nil && len(r.nodes) < maxNodes {
		r.nodes[id] = l
	}
	return l, err
}

const maxNodes = 60_000 // nodes that are stored, which take 10 MB; further ones are read each time

func (r *Repo) readNode(id ID) (*CommitNode, error) {
	const usual = 384 // bytes; enough for most commits up to their committer
	kind, data, _, err := r.read(id, usual)
	if IsTooLarge(err) && !IsSpent(err) { // a delta
		kind, data, _, err = r.read(id, maxCut)
	}
	if err == nil && kind == KindCommit {
		l, rest, ok := r.parseHead(id, data)
		author, rest, _ := bytes.Cut(rest, []byte{'\n'})
		committer, _, whole := bytes.Cut(rest, []byte{'\n'}) // whole is false if the data ends before
		if ok && whole && bytes.HasPrefix(author, []byte("author ")) && bytes.HasPrefix(committer, []byte("committer ")) {
			l.When = whenOf(string(committer))
			return l, nil
		}
	}
	c, err := r.Commit(id)
	if err != nil {
		return nil, err
	}
	l := c.CommitNode // a copy, so that the rest of c can be freed
	return &l, nil
}

// Parent returns the parent number i of a commit, from 0. i must be less than their number.
func (r *Repo) Parent(l *CommitNode, i int) (*CommitNode, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	if i < len(l.parentPositions) {
		if p := r.nodeAt(l.parentPositions[i]); p != nil {
			return p, nil
		}
	}
	return r.CommitNode(l.Parents[i])
}

// parseHead parses the tree and the parents in the data of a commit, and returns the rest of
// the data. ok is false if they are malformed, or too many. l has no time, and no parents
// where a shallow clone ends.
func (r *Repo) parseHead(id ID, data []byte) (l *CommitNode, rest []byte, ok bool) {
	l = &CommitNode{ID: id}
	l.Tree, data, ok = cutID(data, "tree ")
	for more := ok; more; {
		var parent ID
		if parent, data, more = cutID(data, "parent "); more {
			l.Parents = append(l.Parents, parent)
		}
	}
	ok = ok && !l.Tree.IsZero() && len(l.Parents) <= maxParents && !bytes.HasPrefix(data, []byte("parent "))
	if r.shallow[id] {
		l.Parents = nil
	}
	return l, data, ok
}

// cutID cuts the first line off data if it is key, followed by an ID, and returns the ID and
// the rest. If it is another line, ok is false, and rest is data.
func cutID(data []byte, key string) (id ID, rest []byte, ok bool) {
	end := len(key) + 2*len(id)
	if len(data) <= end || string(data[:len(key)]) != key || data[end] != '\n' {
		return id, data, false
	}
	if _, err := hex.Decode(id[:], data[len(key):end]); err != nil {
		return id, data, false
	}
	return id, data[end+1:], true
}

// whenOf returns the time of a signature, in seconds since 1970; 0 if it has no valid one.
func whenOf(text string) int64 {
	text = strings.TrimLeft(text[strings.LastIndexByte(text, '>')+1:], " ")
	end := 0
	for end < len(text) && end <= maxDigits && '0' <= text[end] && text[end] <= '9' {
		end++
	}
	const lastSecond = 1 << 40 // the end of all calendars
	seconds, err := strconv.ParseInt(text[:end], 10, 64)
	if err != nil || seconds > lastSecond {
		return 0
	}
	return seconds
}

const maxDigits = 13 // digits of a time in seconds since 1970; one with more is not valid

// utf8Of returns text as UTF-8. If text is no UTF-8, it is read as Latin-1 (latin is set), or
// its invalid bytes are replaced.
func utf8Of(text string, latin bool) string {
	if utf8.ValidString(text) {
		return text
	}
	if !latin {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	var b strings.Builder
	for i := range len(text) {
		b.WriteRune(rune(text[i]))
	}
	return b.String()
}

// signature parses NAME <EMAIL> SECONDS ZONE. Missing parts stay zero.
func signature(text string) (s Signature) {
	open, end := strings.IndexByte(text, '<'), strings.LastIndexByte(text, '>')
	if open < 0 || end < open {
		s.Name = strings.TrimSpace(text)
		return s
	}
	s.Name, s.Email = strings.TrimSpace(text[:open]), text[open+1:end]
	fields := strings.Fields(text[end+1:])
	if len(fields) == 0 {
		return s
	}
	offset := 0
	if len(fields) > 1 {
		if zone, err := strconv.Atoi(fields[1]); err == nil && -10000 < zone && zone < 10000 {
			offset = (zone/100*60 + zone%100) * 60
		}
	}
	s.When = time.Unix(whenOf(text), 0).In(time.FixedZone("", offset))
	return s
}

// Tag is an annotated tag.
type Tag struct {
	Object  ID // object that the tag names, of any kind: it may be a tag, too
	Name    string
	Tagger  Signature
	Message string // message in UTF-8, cut after 64 KiB
}

func parseTag(id ID, data []byte) (*Tag, error) {
	t := new(Tag)
	head, message, _ := strings.Cut(string(data), "\n\n")
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "object":
			t.Object, _ = parseID(value)
		case "tag":
			t.Name = utf8Of(value, false)
		case "tagger":
			t.Tagger = signature(value)
		}
	}
	if t.Object.IsZero() {
		return nil, Corrupt("the tag %s is of no object", id)
	}
	t.Tagger.Name = utf8Of(t.Tagger.Name, false)
	t.Message = strings.Trim(utf8Of(message[:min(len(message), maxMessage)], false), "\n")
	return t, nil
}

// Tag reads an annotated tag.
func (r *Repo) Tag(id ID) (*Tag, error) {
	kind, data, _, err := r.read(id, maxCut)
	if err != nil {
		return nil, err
	}
	if kind != KindTag {
		return nil, Corrupt("the object %s is a %s and not a tag", id, kind)
	}
	return parseTag(id, data)
}
