package ollama

import (
	"bytes"
	"encoding/json"

	"github.com/stockade-dev/stockade/host/tool"
)

// parameters holds the part of a tool's JSON Schema that Ollama reads. It drops other fields, and
// refuses the whole request if a field has another type than here.
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

// types holds one or several types of a schema.
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

// wireParameters returns a schema that Ollama takes: the tool's schema byte for byte if
// possible, else without the fields whose type Ollama does not expect. The tool still checks its
// arguments by its whole schema.
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

// schemaFields returns the fields of a schema without those that Ollama refuses.
func schemaFields(schema json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(schema, &fields) != nil || fields == nil {
		return map[string]json.RawMessage{} // true and false are schemas, too
	}
	for _, alternatives := range []string{"oneOf", "anyOf"} { // Ollama knows only anyOf
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
