package trust

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/config/keys"
)

// editedName is the name of an edited file in errors. The caller adds the path.
const editedName = "trust.toml"

// AddPublisher adds a publisher at the end of a file, and leaves the rest unchanged. It
// is an error if the file has a publisher with the same name or one of its keys, or if
// the result could not be read again. data can be empty.
func AddPublisher(data []byte, p Publisher) ([]byte, error) {
	return add(data, p.toml())
}

// Revoke adds a revocation at the end of a file, and leaves the rest unchanged. It is an
// error if the file has that revocation already.
func Revoke(data []byte, v Revocation) ([]byte, error) {
	return add(data, v.toml())
}

func add(data []byte, table string) ([]byte, error) {
	if _, err := Parse(editedName, data); err != nil {
		return nil, err
	}
	text := string(data)
	if text != "" {
		text = strings.TrimRight(text, "\r\n") + "\n\n"
	}
	text += table
	if _, err := Parse(editedName, []byte(text)); err != nil {
		return nil, err
	}
	return []byte(text), nil
}

// RemovePublisher removes the publisher with a name from a file. The file is written
// anew, with publishers and revocations sorted, and its comments are lost.
func RemovePublisher(data []byte, name string) ([]byte, error) {
	f, err := Parse(editedName, data)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(f.Publishers, func(p Publisher) bool { return p.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no publisher %.128q", name)
	}
	f.Publishers = slices.Delete(f.Publishers, i, i+1)
	return f.toml(), nil
}

func (f *File) toml() []byte {
	var tables []string
	slices.SortFunc(f.Publishers, func(a, b Publisher) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range f.Publishers {
		tables = append(tables, p.toml())
	}
	slices.SortFunc(f.Revoked, func(a, b Revocation) int { return cmp.Compare(a.Key+a.Digest, b.Key+b.Digest) })
	for _, v := range f.Revoked {
		tables = append(tables, v.toml())
	}
	return []byte(strings.Join(tables, "\n"))
}

func (p Publisher) toml() string {
	var texts []string
	for _, k := range p.Keys {
		texts = append(texts, k.String())
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[[publisher]]\nname = %s\nnamespaces = %s\nkeys = %s\n", keys.Format(p.Name), keys.Format(p.Namespaces), keys.Format(texts))
	if p.Threshold > 1 {
		fmt.Fprintf(&b, "threshold = %s\n", keys.Format(p.Threshold))
	}
	if !p.Expires.IsZero() {
		fmt.Fprintf(&b, "expires = %s\n", keys.Format(p.Expires))
	}
	return b.String()
}

func (v Revocation) toml() string {
	var b strings.Builder
	b.WriteString("[[revoked]]\n")
	for _, f := range []struct{ key, value string }{{"key", v.Key}, {"digest", v.Digest}, {"why", v.Why}} {
		if f.value != "" {
			fmt.Fprintf(&b, "%s = %s\n", f.key, keys.Format(f.value))
		}
	}
	return b.String()
}
