package tool

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

type arguments struct {
	schema   json.RawMessage // JSON Schema, draft 2020-12
	defaults json.RawMessage // object with the default values
	names    []string
}

func (a *arguments) has(name string) bool { return slices.Contains(a.names, name) }

func argumentsOf(t reflect.Type) (*arguments, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("the arguments have type %v, which is not a struct", t)
	}
	var defaults object
	schema, names, err := structSchema(t, nil, &defaults)
	if err != nil {
		return nil, err
	}
	return &arguments{schema: schema.json(), defaults: defaults.json(), names: names}, nil
}

// object builds a JSON object whose keys keep their order: the manifest is hashed and signed,
// so it must be the same in every build.
type object struct{ buf bytes.Buffer }

func (o *object) add(key string, value any) {
	if o.buf.Len() > 0 {
		o.buf.WriteByte(',')
	}
	for i, part := range []any{key, value} {
		if i > 0 {
			o.buf.WriteByte(':')
		}
		text, err := encode(part)
		if err != nil {
			panic(err) // only strings, numbers, bools and our own JSON come here
		}
		o.buf.Write(text)
	}
}

func (o *object) json() json.RawMessage {
	return json.RawMessage("{" + o.buf.String() + "}")
}

// structSchema returns the schema of the struct t and the names of its fields. outer are the
// types around t. It adds the default values of the fields to defaults; nil: there must be
// none.
func structSchema(t reflect.Type, outer []reflect.Type, defaults *object) (schema *object, names []string, err error) {
	if slices.Contains(outer, t) {
		return nil, nil, fmt.Errorf("%v contains itself", t)
	}
	outer = append(slices.Clip(outer), t)
	var properties object
	var required []string
	for f := range t.Fields() {
		if f.Anonymous {
			return nil, nil, fmt.Errorf("%v embeds %v; give the field a name", t, f.Type)
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" && options == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if slices.Contains(names, name) {
			return nil, nil, fmt.Errorf("two fields of %v are named %q", t, name)
		}
		names = append(names, name)
		optional := f.Type.Kind() == reflect.Pointer ||
			slices.ContainsFunc(strings.Split(options, ","), func(s string) bool { return s == "omitempty" || s == "omitzero" })
		if !optional {
			required = append(required, name)
		}
		property, err := fieldSchema(f, outer)
		if err != nil {
			return nil, nil, fmt.Errorf("field %s of %v: %w", f.Name, t, err)
		}
		if text, ok := f.Tag.Lookup("default"); ok {
			if !optional {
				return nil, nil, fmt.Errorf("field %s of %v has a default but is required; add omitempty", f.Name, t)
			}
			if defaults == nil {
				return nil, nil, fmt.Errorf("field %s of %v has a default; only top-level arguments can", f.Name, t)
			}
			value, err := tagValue(f, "default", text)
			if err != nil {
				return nil, nil, err
			}
			property.add("default", value)
			defaults.add(name, value)
		}
		properties.add(name, property.json())
	}
	schema = new(object)
	schema.add("type", "object")
	schema.add("properties", properties.json())
	if len(required) > 0 {
		schema.add("required", required)
	}
	schema.add("additionalProperties", false)
	return schema, names, nil
}

// fieldSchema describes one field by its type and its tags, without its default value.
func fieldSchema(f reflect.StructField, outer []reflect.Type) (*object, error) {
	schema, err := typeSchema(f.Type, outer)
	if err != nil {
		return nil, err
	}
	if desc := f.Tag.Get("desc"); desc != "" {
		schema.add("description", desc)
	}
	kind := derefType(f.Type).Kind()
	if enum, ok := f.Tag.Lookup("enum"); ok {
		if kind != reflect.String {
			return nil, errors.New("enum needs a string")
		}
		schema.add("enum", strings.Split(enum, ","))
	}
	for _, bound := range []struct{ tag, keyword string }{{"min", "minimum"}, {"max", "maximum"}} {
		text, ok := f.Tag.Lookup(bound.tag)
		if !ok {
			continue
		}
		if !isNumber(kind) {
			return nil, fmt.Errorf("%s needs a number", bound.tag)
		}
		value, err := tagValue(f, bound.tag, text)
		if err != nil {
			return nil, err
		}
		schema.add(bound.keyword, value)
	}
	return schema, nil
}

var (
	rawMessage      = reflect.TypeFor[json.RawMessage]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// typeSchema returns the schema of the JSON that encoding/json accepts for t.
func typeSchema(t reflect.Type, outer []reflect.Type) (*object, error) {
	schema := new(object)
	t = derefType(t)
	switch {
	case t == rawMessage, t.Kind() == reflect.Interface && t.NumMethod() == 0:
		return schema, nil // any JSON value
	case reflect.PointerTo(t).Implements(jsonUnmarshaler):
		return nil, fmt.Errorf("%v decodes itself, so that its schema is unknown; use json.RawMessage", t)
	case reflect.PointerTo(t).Implements(textUnmarshaler):
		schema.add("type", "string")
		return schema, nil
	}
	switch kind := t.Kind(); {
	case kind == reflect.String:
		schema.add("type", "string")
	case kind == reflect.Bool:
		schema.add("type", "boolean")
	case kind == reflect.Float32 || kind == reflect.Float64:
		schema.add("type", "number")
	case isNumber(kind):
		schema.add("type", "integer")
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		schema.add("type", "string")
		schema.add("contentEncoding", "base64")
	case kind == reflect.Slice || kind == reflect.Array:
		items, err := typeSchema(t.Elem(), outer)
		if err != nil {
			return nil, err
		}
		schema.add("type", "array")
		schema.add("items", items.json())
	case kind == reflect.Map && t.Key().Kind() == reflect.String:
		values, err := typeSchema(t.Elem(), outer)
		if err != nil {
			return nil, err
		}
		schema.add("type", "object")
		schema.add("additionalProperties", values.json())
	case kind == reflect.Struct:
		nested, _, err := structSchema(t, outer, nil)
		return nested, err
	default:
		return nil, fmt.Errorf("%v has no JSON Schema", t)
	}
	return schema, nil
}

func derefType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func isNumber(kind reflect.Kind) bool {
	return kind >= reflect.Int && kind <= reflect.Float64 && kind != reflect.Uintptr
}

// tagValue parses the text of a tag as a value of the field's type.
func tagValue(f reflect.StructField, tag, text string) (value any, err error) {
	t := derefType(f.Type)
	switch kind := t.Kind(); {
	case kind == reflect.String:
		value = text
	case kind == reflect.Bool:
		value, err = strconv.ParseBool(text)
	case kind == reflect.Float32 || kind == reflect.Float64:
		value, err = strconv.ParseFloat(text, t.Bits())
	case kind >= reflect.Uint && kind < reflect.Uintptr:
		value, err = strconv.ParseUint(text, 10, t.Bits())
	case isNumber(kind):
		value, err = strconv.ParseInt(text, 10, t.Bits())
	default:
		err = fmt.Errorf("%v cannot have one", t)
	}
	if err != nil {
		return nil, fmt.Errorf("%s of field %s: %w", tag, f.Name, err)
	}
	return value, nil
}
