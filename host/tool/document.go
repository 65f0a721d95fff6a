package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Doc is what a tool says of itself to people who call it and who write scripts, in the
// words of its author.
type Doc struct {
	// Errors are those that the tool gives, each "CODE: when, and what to do".
	Errors []string `json:"errors,omitempty"`
	// Limits are what it does only so far.
	Limits []string `json:"limits,omitempty"`
	// Examples are calls.
	Examples []Example `json:"examples,omitempty"`
}

// Example is one call.
type Example struct {
	// Args are its arguments, a JSON object. Whether they fit the schema nobody has checked.
	Args json.RawMessage `json:"args"`
	// Text says what it does.
	Text string `json:"text"`
}

// Limits on the documentation of one tool; bytes of one text, and of the arguments of one example.
const (
	maxDocErrors   = 32
	maxDocLimits   = 16
	maxDocExamples = 8
	maxDocText     = 400
	maxDocArgs     = 2 << 10
)

func (d *Doc) check() error {
	for _, list := range []struct {
		name    string
		has, of int
	}{{"errors", len(d.Errors), maxDocErrors}, {"limits", len(d.Limits), maxDocLimits}, {"examples", len(d.Examples), maxDocExamples}} {
		if list.has > list.of {
			return fmt.Errorf("%d %s, more than the limit of %d", list.has, list.name, list.of)
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

func checkDocText(s string) error {
	if strings.TrimSpace(s) == "" || len(s) > maxDocText || !utf8.ValidString(s) {
		return fmt.Errorf("a text has %d bytes; it needs 1 to %d, of UTF-8", len(s), maxDocText)
	}
	return nil
}
