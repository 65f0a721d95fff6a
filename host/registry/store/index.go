package store

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/tool"
)

// maxIndexBytes limits the size of the index; a larger one is an error. It is enough for some
// thousand modules.
const maxIndexBytes = 32 << 20

// The index is JSON in a fixed form: a head with the SHA-256 of the list that follows,
// one record a line, and an end. This program never writes another form.
const (
	head      = `{"version":1,"sha256":"`
	afterSum  = `","records":`
	end       = "}\n"
	sumHexLen = 64
)

// errDamaged is returned for an index that differs from what this program wrote. Nothing
// in it is believed: it could allow more than was approved.
var errDamaged = errors.New("is damaged: it is not what was written; restore it from a backup, " +
	"or move it away and add your modules again; \"stockade tool verify\" tells whether all is well then")

// encode returns the index of the records, and the JSON of each record.
func encode(records []Record) (index []byte, lines []string, err error) {
	var list bytes.Buffer
	list.WriteString("[\n")
	for i, r := range records {
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(r); err != nil {
			return nil, nil, fmt.Errorf("module %q: %w", r.Name, err)
		}
		text := strings.TrimSuffix(line.String(), "\n")
		lines = append(lines, text)
		list.WriteString(text)
		if i < len(records)-1 {
			list.WriteByte(',')
		}
		list.WriteByte('\n')
	}
	list.WriteString("]")
	return []byte(head + tool.SHA256(list.Bytes()) + afterSum + list.String() + end), lines, nil
}

// decode reads an index. Its errors continue a sentence that begins with the name of the
// file. It does not check the manifests again, as schemas with patterns take a
// millisecond each: they were checked when they were added, and the checksum shows that
// nothing has changed since.
func decode(data []byte) ([]Record, error) {
	if len(data) > maxIndexBytes {
		return nil, fmt.Errorf("has %d bytes, more than the limit of %d", len(data), maxIndexBytes)
	}
	rest, ok := bytes.CutPrefix(data, []byte(head))
	if !ok {
		if v := version(data); v > 1 {
			return nil, fmt.Errorf("was written by a newer stockade (version %d of its form); use that one", v)
		}
		return nil, errDamaged
	}
	if len(rest) < sumHexLen {
		return nil, errDamaged
	}
	sum, rest := string(rest[:sumHexLen]), rest[sumHexLen:]
	rest, okHead := bytes.CutPrefix(rest, []byte(afterSum))
	list, okEnd := bytes.CutSuffix(rest, []byte(end))
	if !okHead || !okEnd || tool.SHA256(list) != sum {
		return nil, errDamaged
	}
	dec := json.NewDecoder(bytes.NewReader(list))
	dec.DisallowUnknownFields()
	if tok, err := dec.Token(); tok != json.Delim('[') {
		return nil, errors.Join(errDamaged, err)
	}
	var records []Record
	for dec.More() {
		var r Record
		if err := dec.Decode(&r); err != nil {
			return nil, fmt.Errorf("holds record %d, which cannot be read: %w", len(records)+1, err)
		}
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("holds module %.80q, %w", r.Name, err)
		}
		if n := len(records); n > 0 && compare(records[n-1], r) >= 0 {
			return nil, fmt.Errorf("holds module %q twice, or in the wrong order", r.Name)
		}
		records = append(records, r)
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("holds a list without an end: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errDamaged
	}
	return records, nil
}

// decodeExact reads an index and checks that it is byte for byte what this program
// writes: no key is in it twice or in another case. It takes twice as long as decode.
func decodeExact(data []byte) (records []Record, lines []string, err error) {
	if records, err = decode(data); err != nil {
		return nil, nil, err
	}
	again, lines, err := encode(records)
	if err == nil && !bytes.Equal(again, data) {
		err = errDamaged
	}
	return records, lines, err
}

// version returns the version of the format of an index; 0: the data is no index.
func version(data []byte) int {
	text, ok := bytes.CutPrefix(data, []byte(`{"version":`))
	number, _, ok2 := bytes.Cut(text[:min(len(text), 10)], []byte(","))
	n, err := strconv.Atoi(string(number))
	if !ok || !ok2 || err != nil {
		return 0
	}
	return n
}

func isHash(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sumHexLen/2 && strings.ToLower(s) == s
}
