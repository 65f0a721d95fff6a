package ollama

import (
	"bytes"
	"encoding/json"

	"github.com/stockade-dev/stockade/host/tool"
)

// parameters are the part of JSON Schema that Ollama reads of a tool. It refuses a whole
// request for a field that has another type than here, and drops what is not here.
type parameters struct {
	Type       string              `json:"type"`
	Defs       json.RawMessage     `json:"$defs,omitempty"`
	Items      json.RawMessage     `json:"items,omitempty"`
	Required   []string            `json:"required,omitempty"`
	Properties map[string]property `json:"properties"`
}

type property struct {
	AnyOf       []property          `json:"anyOf,omitempty"`
	Type        types               `json:"type,omitempty"`
	Items       json.RawMessage     `json:"items,omitempty"`
	Description string              `json:"description,omitempty"`
	Enum        []json.RawMessage   `json:"enum,omitempty"`
	Properties  map[string]property `json:"properties,omitempty"`
	Required    []string            `json:"required,omitempty"`
}

// types is a type or a list of them.
type types []string

func (t *types) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		return json.Unmarshal(data, (*[]string)(t))
	}
	var one string
	err := json.Unmarshal(data, &one)
	*t = types{one}
	return err
}

// wireParameters is a schema that Ollama takes: the one of the tool, byte for byte, if it
// can be, or else what is left of it without the fields that have another type than Ollama
// expects. The tool still checks its arguments by all of its schema.
func wireParameters(schema json.RawMessage) json.RawMessage {
	if p := (parameters{}); json.Unmarshal(schema, &p) == nil && p.Type != "" && p.Properties != nil {
		return bytes.Clone(schema)
	}
	fields := schemaFields(schema)
	if fields["type"] = json.RawMessage(`"object"`); fields["properties"] == nil {
		fields["properties"] = json.RawMessage("{}")
	}
	return tool.Marshal(fields)
}

// schemaFields are the fields of a schema without those that Ollama refuses.
func schemaFields(schema json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(schema, &fields) != nil || fields == nil {
		return map[string]json.RawMessage{} // true and false are schemas, too
	}
	for _, alternatives := range []string{"oneOf", "anyOf"} { // Ollama knows the second only
		if list := []json.RawMessage(nil); fields[alternatives] != nil && json.Unmarshal(fields[alternatives], &list) == nil {
			delete(fields, alternatives)
			for i := range list {
				list[i] = tool.Marshal(schemaFields(list[i]))
			}
			fields["anyOf"] = tool.Marshal(list)
		}
	}
	if nested := map[string]json.RawMessage(nil); fields["properties"] != nil && json.Unmarshal(fields["properties"], &nested) == nil {
		for name := range nested {
			nested[name] = tool.Marshal(schemaFields(nested[name]))
		}
		fields["properties"] = tool.Marshal(nested)
	}
	for name := range fields {
		if alone := tool.Marshal(map[string]json.RawMessage{name: fields[name]}); json.Unmarshal(alone, new(property)) != nil {
			delete(fields, name)
		}
	}
	return fields
}
