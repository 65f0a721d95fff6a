package trust

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/config/keys"
)

// The name of a file that is edited, for messages: its owner says where it is.
const editedName = "trust.toml"

// AddPublisher adds a publisher to a file, at its end, and leaves the rest as it
// is. It is an error if the file has one of that name or one of its keys, or if
// it could not be read again. Data can be empty.
func AddPublisher(data []byte, p Publisher) ([]byte, error) {
	return add(data, p.toml())
}

// Revoke adds a revocation to a file, at its end, and leaves the rest as it is. It
// is an error if that is revoked already.
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

// RemovePublisher takes the publisher of a name out of a file. The file is written anew,
// publishers and revocations sorted, and its comments are gone.
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
