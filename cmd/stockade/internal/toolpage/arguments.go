package toolpage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Argument is one argument of a tool, as its schema describes it.
type Argument struct {
	Name     string
	Type     string // such as "string" or "list of integer"; "any" if the schema does not name a type
	Required bool
	Default  string // default value as a person types it; empty: there is none
	About    string // description of the argument, and its possible values
}

// schema is the part of a JSON Schema that we show.
type schema struct {
	Type        json.RawMessage   `json:"type"`
	Description string            `json:"description"`
	Default     json.RawMessage   `json:"default"`
	Enum        []json.RawMessage `json:"enum"`
	Minimum     json.Number       `json:"minimum"`
	Maximum     json.Number       `json:"maximum"`
	MaxLength   json.Number       `json:"maxLength"`
	Items       json.RawMessage   `json:"items"`
	Properties  json.RawMessage   `json:"properties"`
	Required    []string          `json:"required"`
}

// Arguments returns the arguments in the order of the schema. ok is false if the schema
// contains more than the arguments show: then a person has to read the schema itself.
func Arguments(parameters json.RawMessage) (args []Argument, ok bool) {
	var top schema
	if json.Unmarshal(parameters, &top) != nil {
		return nil, false
	}
	names, fields := ordered(top.Properties)
	for _, name := range names {
		var s schema
		if json.Unmarshal(fields[name], &s) != nil {
			return nil, false
		}
		args = append(args, Argument{
			Name: name, Type: typeOf(s, 0), Required: slices.Contains(top.Required, name), Default: typedText(s.Default), About: about(s),
		})
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(parameters, &keys) != nil {
		return nil, false
	}
	for key := range keys {
		ok := slices.Contains([]string{"type", "properties", "required", "additionalProperties", "description", "title", "$schema"}, key)
		if !ok {
			return args, false
		}
	}
	return args, true
}

// typedText returns a value as a person types it: a text has no quotation marks, unless it is
// blank.
func typedText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil && strings.TrimSpace(text) != "" {
		return text
	}
	return string(value)
}

// ordered returns the keys of a JSON object in their order, and its values.
func ordered(object json.RawMessage) (names []string, values map[string]json.RawMessage) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, nil
	}
	values = map[string]json.RawMessage{}
	for dec.More() {
		tok, err := dec.Token()
		var value json.RawMessage
		if err == nil {
			err = dec.Decode(&value)
		}
		name, isName := tok.(string)
		if err != nil || !isName {
			return nil, nil
		}
		names = append(names, name)
		values[name] = value
	}
	return names, values
}

// maxTypeDepth limits the nesting of lists in the name of a type, such as "list of list"; the
// type of the entries of a deeper list is left out.
const maxTypeDepth = 3

func typeOf(s schema, depth int) string {
	var one string
	var several []string
	switch {
	case json.Unmarshal(s.Type, &one) == nil:
	case json.Unmarshal(s.Type, &several) == nil:
		one = strings.Join(several, " or ")
	}
	switch {
	case one == "array" && s.Items != nil && depth < maxTypeDepth:
		var items schema
		if json.Unmarshal(s.Items, &items) != nil {
			return "list"
		}
		return "list of " + typeOf(items, depth+1)
	case one == "array":
		return "list"
	case one == "object" && s.Properties != nil:
		names, _ := ordered(s.Properties)
		for i, name := range names {
			if !slices.Contains(s.Required, name) {
				names[i] += "?"
			}
		}
		return "{" + strings.Join(names, ", ") + "}"
	}
	return cmp.Or(one, "any")
}

// about returns the description of an argument, and its possible values unless the description
// names them.
func about(s schema) string {
	text := s.Description
	values := ""
	switch low, high := s.Minimum.String(), s.Maximum.String(); {
	case len(s.Enum) > 0:
		var all []string
		for _, v := range s.Enum {
			all = append(all, typedText(v))
		}
		values = strings.Join(all, ", ")
	case low != "" && high != "":
		values = fmt.Sprintf("%s to %s", low, high)
	case low != "":
		values = "at least " + low
	case high != "":
		values = "at most " + high
	case s.MaxLength != "":
		values = fmt.Sprintf("at most %s characters", s.MaxLength)
	}
	switch {
	case values == "" || strings.Contains(text, values):
		return text
	case text == "":
		return values
	}
	if sentence, ok := strings.CutSuffix(text, "."); ok {
		return sentence + " (" + values + ")."
	}
	return text + " (" + values + ")"
}
