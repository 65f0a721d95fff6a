package config

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/stockade-dev/stockade/host/config/keys"
)

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

// Trust is a person's yes to a project file: to one content at one place.
type Trust struct {
	Path   string    `toml:"path" json:"path"`     // absolute
	SHA256 string    `toml:"sha256" json:"sha256"` // of the content, in hex
	Added  time.Time `toml:"added" json:"added"`
	Asks   []Ask     `toml:"asks" json:"asks"` // what was shown, so that a change of it can be
}

// TrustIn is the trust that says yes to a file.
func TrustIn(f *File, path string, added time.Time) Trust {
	return Trust{Path: path, SHA256: f.SHA256, Added: added, Asks: f.Asks()}
}

// Covers reports whether the yes was to this content. A program that finds more
// in it than was shown (a later version may) has to ask again, so what it asks
// for is compared, too.
func (t Trust) Covers(f *File) bool {
	return t.SHA256 != "" && t.SHA256 == f.SHA256 && slices.Equal(t.Asks, f.Asks())
}

// Changes says in words what a file asks for that is not what was trusted, a line
// for each. It is empty if that is the same, and the rest of the file changed.
func (t Trust) Changes(now []Ask) []string {
	var out []string
	value := func(asks []Ask, key string) (string, bool) {
		i := slices.IndexFunc(asks, func(a Ask) bool { return a.Key == key })
		if i < 0 {
			return "", false
		}
		return asks[i].Value, true
	}
	for _, key := range Keys() {
		was, before := value(t.Asks, key)
		is, after := value(now, key)
		switch {
		case before && after && was != is:
			out = append(out, key+" was: "+was, key+" is: "+is)
		case before && !after:
			out = append(out, key+" was: "+was, key+" is no longer asked for")
		case after && !before:
			out = append(out, key+" was not asked for", key+" is: "+is)
		}
	}
	return out
}

type trustFile struct {
	Trust []Trust `toml:"trust"`
}

const trustHead = `# The project files that were trusted, each with one content at one place.
# "stockade config trusted" lists them; "stockade config revoke FILE" removes one.

`

// ParseTrust reads the file of what was trusted. A file with anything unknown
// in it is an error.
func ParseTrust(path string, data []byte) ([]Trust, error) {
	var f trustFile
	if err := decodeAll(path, data, &f); err != nil {
		return nil, err
	}
	for i, t := range f.Trust {
		if sum, err := hex.DecodeString(t.SHA256); err != nil || len(sum) != 32 || !filepath.IsAbs(t.Path) {
			return nil, fmt.Errorf("%s: entry %d of trust needs an absolute path and the sha256 of a content", path, i+1)
		}
	}
	return f.Trust, nil
}

// AddTrust adds to the file of what was trusted, which it creates if need be,
// mode 0600. What was trusted at the same place before is not any more. It is
// replaced as a whole, like that of [AddAnswer].
func AddTrust(path string, t Trust) error {
	unlock, err := lockKept(path)
	if err != nil {
		return err
	}
	defer unlock()
	trusts, err := loadTrust(path)
	if err != nil {
		return err
	}
	trusts = slices.DeleteFunc(trusts, func(old Trust) bool { return old.Path == t.Path })
	return writeTrust(path, append(trusts, t))
}

// RemoveTrust takes trust in the file at a place back, and reports whether
// there was any.
func RemoveTrust(path, place string) (bool, error) {
	unlock, err := lockKept(path)
	if err != nil {
		return false, err
	}
	defer unlock()
	trusts, err := loadTrust(path)
	if err != nil {
		return false, err
	}
	keep := slices.DeleteFunc(slices.Clone(trusts), func(t Trust) bool { return t.Path == place })
	if len(keep) == len(trusts) {
		return false, nil
	}
	return true, writeTrust(path, keep)
}

func loadTrust(path string) ([]Trust, error) {
	data, err := readBounded(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return ParseTrust(path, data)
}

func writeTrust(path string, trusts []Trust) error {
	buf := bytes.NewBufferString(trustHead)
	if err := toml.NewEncoder(buf).Encode(trustFile{trusts}); err != nil {
		return err
	}
	if _, err := ParseTrust(path, buf.Bytes()); err != nil {
		return fmt.Errorf("write what is trusted: %w", err)
	}
	return replaceFile(path, buf.Bytes())
}
