package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Doc is the documentation of a tool by its author, for people and for writers of scripts.
type Doc struct {
	Errors   []string  `json:"errors,omitempty"`   // errors of the tool, each as "CODE: when, and what to do"
	Limits   []string  `json:"limits,omitempty"`   // limits of the tool, a text for each
	Examples []Example `json:"examples,omitempty"` // calls of the tool
}

type Example struct {
	Args json.RawMessage `json:"args"` // arguments, a JSON object that is not checked against the schema
	Text string          `json:"text"` // effect of the call
}

// Limits on the documentation of one tool: numbers of entries, bytes of one text, and bytes of
// the arguments of one example. A tool beyond them is refused.
const (
	maxDocErrors   = 32
	maxDocLimits   = 16
	maxDocExamples = 8
	maxDocText     = 400
	maxDocArgs     = 2 << 10
)

func (d *Doc) check() error {
	for _, list := range []struct {
		name         string
		count, limit int
	}{{"errors", len(d.Errors), maxDocErrors}, {"limits", len(d.Limits), maxDocLimits}, {"examples", len(d.Examples), maxDocExamples}} {
		if list.count > list.limit {
			return fmt.Errorf("%d %s, more than the limit of %d", list.count, list.name, list.limit)
		}
	}
	for _, line := range d.Errors {
		if err := checkDocText(line); err != nil {
			return fmt.Errorf("errors: %w", err)
		}
		if code := leadingCode(line); code == "" || code+": " == line {
			return fmt.Errorf("errors: %.80q is not \"CODE: TEXT\", with a code of 3 to 40 capitals, digits or '_'", line)
		}
	}
	for _, line := range d.Limits {
		if err := checkDocText(line); err != nil {
			return fmt.Errorf("limits: %w", err)
		}
	}
	for _, ex := range d.Examples {
		if err := checkDocText(ex.Text); err != nil {
			return fmt.Errorf("examples: %w", err)
		}
		if len(ex.Args) > maxDocArgs || !bytes.HasPrefix(bytes.TrimSpace(ex.Args), []byte("{")) {
			return fmt.Errorf("examples: args are no JSON object of at most %d bytes", maxDocArgs)
		}
	}
	return nil
}

// checkDocText refuses a text that is blank, too long or not UTF-8.
func checkDocText(s string) error {
	if strings.TrimSpace(s) == "" || len(s) > maxDocText || !utf8.ValidString(s) {
		return fmt.Errorf("a text has %d bytes; it needs 1 to %d, of UTF-8", len(s), maxDocText)
	}
	return nil
}
