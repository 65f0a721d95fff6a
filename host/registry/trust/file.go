package trust

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/config/keys"
	"github.com/stockade-dev/stockade/host/registry/sign"
)

// Limits on a file; more is an error. Each signature is verified with every key.
const (
	maxKeys       = 128 // keys of all publishers together
	maxNamespaces = 64  // namespaces of each publisher
	maxRevoked    = 4096
	maxWhyBytes   = 256
)

// File is the content of one trust.toml.
type File struct {
	Name       string // of the file, for messages
	Publishers []Publisher
	Revoked    []Revocation
}

// Publisher is a signer of modules.
type Publisher struct {
	Name       string   // 1 to 128 lower-case letters, digits and ".", "_", "-", "@", "+"
	Namespaces []string // see the package documentation; at least one
	Keys       []sign.PublicKey
	Threshold  int       // number of Keys that have to sign a module; 0 means 1
	Expires    time.Time // time after which it signs nothing new; zero: never
}

// Revocation revokes a key or a digest: it is no longer accepted.
type Revocation struct {
	Key    string // the ID of a key; empty: Digest is set
	Digest string // "sha256:HEX", of a module or an OCI manifest
	Why    string // reason, for people; can be empty
}

// fileKeys holds every key of the file.
var fileKeys = keys.Table{
	{Name: "publisher[].name", Kind: keys.Text("name", "a name in quotes", keys.Valid(ValidName, `1 to 128 of a-z, 0-9, ".", "_", "-", "@" and "+"`))},
	{Name: "publisher[].namespaces", Kind: keys.List("namespaces", `["registry.example.org/tools"]`, maxNamespaces, checkNamespace)},
	{Name: "publisher[].keys", Kind: keys.List("keys", `["ed25519:..."]`, maxKeys, checkPublicKey)},
	{Name: "publisher[].threshold", Kind: keys.Integer(1, maxKeys, "")},
	{Name: "publisher[].expires", Kind: keys.Instant()},
	{Name: "revoked[].key", Kind: keys.Text("key", "a key or its ID in quotes", checkKeyOrID)},
	{Name: "revoked[].digest", Kind: keys.Text("digest", `"sha256:HEX"`, checkDigest)},
	{Name: "revoked[].why", Kind: keys.Text("text", "a text in quotes", checkWhy)},
}

var nameRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._@+-]{0,127}$`) })

// ValidName reports whether s may be the name of a publisher.
func ValidName(s string) bool { return nameRE().MatchString(s) }

func checkNamespace(s string) error {
	name, file := strings.CutPrefix(s, "file:")
	if s == "*" || file && (name == "*" || sign.ValidName(name)) || sign.ValidHost(s) || sign.ValidRepository(s) {
		return nil
	}
	return fmt.Errorf(`%.80q is not HOST, HOST/REPOSITORY in lower case, "file:NAME" or "*"`, s)
}

func checkPublicKey(s string) error {
	_, err := sign.ParsePublicKey(s)
	return err
}

func checkKeyOrID(s string) error {
	if sign.ValidID(s) {
		return nil
	}
	return checkPublicKey(s)
}

var checkDigest = keys.Valid(sign.ValidDigest, `"sha256:" and 64 hexadecimal digits in lower case`)

func checkWhy(s string) error {
	if len(s) > maxWhyBytes || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("it is not one line of at most %d bytes", maxWhyBytes)
	}
	return nil
}

// Parse reads a file. name is its name in messages. Unknown, incomplete and duplicate entries
// are errors; several errors are joined, each with its line.
func Parse(name string, data []byte) (*File, error) {
	parsed, err := fileKeys.Parse(name, data, nil)
	if err != nil {
		return nil, err
	}
	r := reader{file: parsed, seen: map[string]string{}}
	f := &File{Name: name}
	for _, s := range parsed.Settings {
		switch {
		case s.Key < 0 && s.Path[0] == "publisher":
			f.Publishers = append(f.Publishers, Publisher{})
			r.heads = append(r.heads, s)
		case s.Key < 0:
			f.Revoked = append(f.Revoked, Revocation{})
			r.revoked = append(r.revoked, s)
		case s.Path[0] == "publisher":
			r.publisher(s, &f.Publishers[len(f.Publishers)-1])
		default:
			r.revocation(s, &f.Revoked[len(f.Revoked)-1])
		}
	}
	r.finish(f)
	if err := parsed.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

type reader struct {
	file           *keys.File
	heads, revoked []keys.Setting    // the heads of the tables of publishers and revocations
	seen           map[string]string // names, keys and revocations, with the table that has them
	keyCount       int
}

// checkUnique reports a mistake if the file has had the same value of this kind before.
func (r *reader) checkUnique(s keys.Setting, kind, value string) {
	if before, twice := r.seen[kind+value]; twice {
		r.file.Fail(s, fmt.Errorf("%s is already in %s", value, before))
		return
	}
	r.seen[kind+value] = fmt.Sprintf("[[%s]] %d", s.Path[0], s.Index+1)
}

func (r *reader) publisher(s keys.Setting, p *Publisher) {
	switch s.Path[1] {
	case "name":
		p.Name = s.Value.(string)
		r.checkUnique(s, "name ", p.Name)
	case "namespaces":
		p.Namespaces = s.Value.([]string)
		for i, n := range p.Namespaces {
			if slices.Contains(p.Namespaces[:i], n) {
				r.file.Fail(s, fmt.Errorf("%q is there twice", n))
			}
		}
	case "keys":
		for _, text := range s.Value.([]string) {
			k, err := sign.ParsePublicKey(text)
			if err != nil {
				r.file.Fail(s, err)
				return
			}
			p.Keys = append(p.Keys, k)
			r.checkUnique(s, "key ", text)
		}
		if r.keyCount += len(p.Keys); r.keyCount > maxKeys {
			r.file.Fail(s, fmt.Errorf("the file has more than %d keys", maxKeys))
		}
	case "threshold":
		p.Threshold = s.Value.(int)
	case "expires":
		p.Expires = s.Value.(time.Time)
	}
}

func (r *reader) revocation(s keys.Setting, v *Revocation) {
	switch s.Path[1] {
	case "key":
		v.Key = s.Value.(string)
		if k, err := sign.ParsePublicKey(v.Key); err == nil {
			v.Key = k.ID()
		}
		r.checkUnique(s, "revoked ", v.Key)
	case "digest":
		v.Digest = s.Value.(string)
		r.checkUnique(s, "revoked ", v.Digest)
	case "why":
		v.Why = s.Value.(string)
	}
}

// finish checks each table as a whole, and adds it to f.
func (r *reader) finish(f *File) {
	for i := range f.Publishers {
		p := &f.Publishers[i]
		p.Threshold = cmp.Or(p.Threshold, 1)
		switch {
		case p.Name == "":
			r.file.Fail(r.heads[i], errors.New("it has no name"))
		case len(p.Namespaces) == 0:
			r.file.Fail(r.heads[i], errors.New(`it has no namespaces, so it could sign nothing; write those that it publishes in, or ["*"]`))
		case len(p.Keys) == 0:
			r.file.Fail(r.heads[i], errors.New("it has no keys"))
		case p.Threshold > len(p.Keys):
			r.file.Fail(r.heads[i], fmt.Errorf("threshold = %d, and it has %d of keys; it could sign nothing", p.Threshold, len(p.Keys)))
		}
	}
	for i, v := range f.Revoked {
		switch {
		case (v.Key == "") == (v.Digest == ""):
			r.file.Fail(r.revoked[i], errors.New("it needs a key or a digest, and not both"))
		case i == maxRevoked:
			r.file.Fail(r.revoked[i], fmt.Errorf("the file revokes more than %d keys and digests", maxRevoked))
		}
	}
}
