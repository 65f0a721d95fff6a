package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/stockade-dev/stockade/host/config/keys"
)

// Layer names whose file an agent.toml is.
type Layer string

const (
	User Layer = "user" // the file of the person who runs the program
	// Project is the file in the working directory, which may have come with a
	// repository. The class of each key limits what it may do.
	Project Layer = "project"
)

// File holds the settings of one agent.toml.
type File struct {
	Path   string // the path that was given to Load or Parse
	Layer  Layer
	SHA256 string // of the file's bytes, in hex
	// Trusted is set by the caller if a person has trusted a project's file with exactly
	// this content. Load leaves it false.
	Trusted bool

	settings  map[string]setting
	entryKeys []*key // keys below names, such as profiles.work.model, in the order of [Config.Keys]
}

type setting struct {
	key   *key
	value any // the value, checked, in the type of the key's field in [Config]
	line  int
}

// TrustRequest is a setting of a project file that has no effect until a person trusts the
// file.
type TrustRequest struct {
	Key   string `toml:"key" json:"key"`
	Value string `toml:"value" json:"value"` // the value as in a file; system_prompt without quotes
}

// TrustRequests returns the file's settings that need trust, in the order of [Config.Keys].
// For a nil file it returns none.
func (f *File) TrustRequests() []TrustRequest {
	var asks []TrustRequest
	for k, s := range f.all() {
		if !k.class.needsTrust() {
			continue
		}
		value := keys.Format(s.value)
		if k.Name == "system_prompt" {
			value = s.value.(string)
		}
		asks = append(asks, TrustRequest{k.Name, value})
	}
	return asks
}

// Key returns the entry of the table for a key, which the file must set.
func (f *File) Key(name string) keys.Key { return f.settings[name].key.Key }

// all yields the settings, in the order of [Config.Keys]. For a nil file it yields none.
func (f *File) all() iter.Seq2[*key, setting] {
	return func(yield func(*key, setting) bool) {
		if f == nil {
			return
		}
		for i := range table {
			if s, ok := f.settings[table[i].Name]; ok && !yield(&table[i], s) {
				return
			}
		}
		for _, k := range f.entryKeys {
			if !yield(k, f.settings[k.Name]) {
				return
			}
		}
	}
}

// Line returns the line on which a file sets a key; 0: the file does not set the key.
func (f *File) Line(name string) int { return f.settings[name].line }

// Load reads a file and checks every key and value. If the file does not exist, the error is
// fs.ErrNotExist. Mistakes in the file are *keys.Error values, at most ten, joined in the
// order of their lines; then the *File is nil. Load does not check that paths exist: the
// caller has to.
func Load(path string, layer Layer) (*File, error) {
	// Before the file is opened, because opening a named pipe would wait for a writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &keys.Error{Path: path, Message: "it is not a regular file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, keys.MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, layer, data)
}

// Parse is [Load] for content that the caller has already read. Before reading, the caller
// checks who could have written the file.
func Parse(path string, layer Layer, data []byte) (*File, error) {
	parsed, err := fileKeys.Parse(path, data, secretHint)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data) // of the parsed bytes; the file is not read again
	f := &File{Path: path, Layer: layer, SHA256: hex.EncodeToString(sum[:]), settings: make(map[string]setting)}
	names := map[string]map[string]keys.Setting{"profiles": {}, "prices": {}} // table → name → the first setting below it
	for _, s := range parsed.Settings {
		k := (*key)(nil)
		switch {
		case len(s.Path) > 1 && names[s.Path[0]] != nil:
			in, name := names[s.Path[0]], s.Path[1]
			if _, known := in[name]; !known {
				in[name] = s
				if err := checkName(s.Path[0], name); err != nil {
					parsed.Fail(s, err)
				}
			}
			if s.Key >= 0 {
				k = entryTable[s.Key-len(table)].keyFor(name)
				f.entryKeys = append(f.entryKeys, k)
			}
		case s.Key >= 0:
			k = &table[s.Key]
		}
		if k != nil {
			f.settings[k.Name] = setting{k, s.Value, parsed.Line(s)}
		}
	}
	slices.SortFunc(f.entryKeys, (*key).compare)
	f.checkEntries(parsed, names)
	if err := parsed.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

// checkEntries reports profiles and prices that lack a required key, and too many of them.
// names holds the first setting of each, by the name of its table and its own.
func (f *File) checkEntries(parsed *keys.File, names map[string]map[string]keys.Setting) {
	for _, table := range []struct {
		name, needs string
		maxNames    int
	}{{"profiles", "provider", maxProfiles}, {"prices", "input output", maxPrices}} {
		in := names[table.name]
		for _, name := range slices.Sorted(maps.Keys(in)) {
			if len(in) > table.maxNames {
				parsed.Fail(in[name], fmt.Errorf("there are %d names below %s; at most %d are accepted", len(in), table.name, table.maxNames))
				break
			}
			for need := range strings.FieldsSeq(table.needs) {
				// A project may set only some keys of a user's profile.
				if _, ok := f.settings[toml.Key{table.name, name, need}.String()]; !ok && (f.Layer == User || table.name == "prices" || !f.hasEntry(name)) {
					parsed.Fail(in[name], fmt.Errorf("%s is missing", need))
				}
			}
		}
	}
}

// hasEntry reports whether the file sets anything below a name.
func (f *File) hasEntry(name string) bool {
	return slices.ContainsFunc(f.entryKeys, func(k *key) bool { return k.entryName == name })
}

// secretHint returns a hint for an unknown key whose value seems to be a secret. For other
// keys it is empty.
func secretHint(path []string) string {
	last := strings.ToLower(path[len(path)-1])
	for _, word := range []string{"api_key", "apikey", "api-key", "secret", "token", "password"} {
		if strings.HasSuffix(last, word) {
			return "; secrets are never in a file: put the key into the environment variable that model.api_key_env names"
		}
	}
	return ""
}
