package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// FlatSchema returns the JSON Schema of a tool's arguments, from a flat list of parameters by
// name. Each parameter is {"type", "description", "required": true, ...}; without the boolean
// "required" it is the schema of the argument. If "required" is a list, it names properties of
// the argument itself, and stays. Other arguments are not allowed, unless there are no
// parameters.
func FlatSchema(parameters map[string]json.RawMessage) (json.RawMessage, error) {
	if len(parameters) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`), nil
	}
	size := 0
	for name, schema := range parameters {
		size += len(name) + len(schema)
	}
	if size > MaxManifestBytes {
		return nil, fmt.Errorf("parameters have %d bytes, more than the limit of %d", size, MaxManifestBytes)
	}
	flat := struct {
		Type       string                                `json:"type"`
		Properties map[string]map[string]json.RawMessage `json:"properties"`
		Required   []string                              `json:"required,omitempty"`
		Additional bool                                  `json:"additionalProperties"`
	}{Type: "object", Properties: map[string]map[string]json.RawMessage{}}
	for _, name := range sortedKeys(parameters) {
		if err := CheckJSON(parameters[name]); err != nil {
			return nil, fmt.Errorf("parameter %.80q %w", name, err)
		}
		var schema map[string]json.RawMessage
		if err := json.Unmarshal(parameters[name], &schema); err != nil || schema == nil {
			return nil, fmt.Errorf("parameter %.80q is not an object such as {\"type\": \"string\", \"description\": \"...\", \"required\": true}", name)
		}
		switch flag := bytes.TrimSpace(schema["required"]); {
		case flag == nil, bytes.HasPrefix(flag, []byte("[")):
		case string(flag) == "true":
			flat.Required = append(flat.Required, name)
			delete(schema, "required")
		case string(flag) == "false":
			delete(schema, "required")
		default:
			return nil, fmt.Errorf("parameter %.80q: \"required\" is %.80s; it can be true or false", name, flag)
		}
		flat.Properties[name] = schema
	}
	schema := Marshal(flat)
	if _, err := CompileSchema(schema); err != nil {
		return nil, fmt.Errorf("parameters: the schema %w", err)
	}
	return schema, nil
}
