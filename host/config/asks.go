package config

import "github.com/stockade-dev/stockade/host/config/keys"

// Ask is a setting of a project file that counts only when a person has trusted
// the file.
type Ask struct {
	Key   string `toml:"key" json:"key"`
	Value string `toml:"value" json:"value"` // as in a file; plain text as it is, without quotes
}

// Asks returns what the file asks for, in the order of [Keys]; of a nil file,
// nothing.
func (f *File) Asks() []Ask {
	var asks []Ask
	for i := range table {
		k := &table[i]
		s, ok := f.setting(k)
		if !ok || !k.class.byTrust() {
			continue
		}
		value := keys.Format(s.value)
		if k.Name == "system_prompt" {
			value = s.value.(string)
		}
		asks = append(asks, Ask{k.Name, value})
	}
	return asks
}

// Line is the line on which a file sets a key; 0 when it does not.
func (f *File) Line(name string) int {
	if k := find(name); k != nil {
		if s, ok := f.setting(k); ok {
			return s.line
		}
	}
	return 0
}
