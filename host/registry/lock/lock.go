// Package lock reads and writes stockade.lock, which names the modules of a project: the
// source of each module, the hash of its bytes, the wants that were approved, and its signer.
//
// The file is committed and comes with a clone, so it is as hostile as any. It grants nothing,
// and none of its modules is fetched before a person has said yes to exactly the bytes of the
// file: see RATIONALE, "Why does a lockfile name words and not grants?". It is made for
// reviews: modules sorted, one key a line, and [Diff] explains a change in words.
//
//	f, err := lock.Parse("stockade.lock", data)
//	for _, m := range f.Modules { ... m.Source, m.Digest ... }
//	data = lock.Format(f)
package lock

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/config/keys"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/visible"
)

// Limits on a lock file, beside its size of at most 1 MiB; a file beyond them is refused.
const (
	maxModules    = 200
	maxKeys       = 16
	maxText       = 200       // bytes of a version, a signer or a key
	maxSource     = 2 << 10   // bytes of a source
	maxWants      = 8 << 10   // bytes of the wants of a module
	maxBytes      = 64 << 20  // bytes of a module; no larger one is admitted
	maxTotalBytes = 512 << 20 // bytes of all modules: they are in memory until all have been fetched
)

// File is the content of a lock file.
type File struct {
	Modules []Module // sorted by name
}

// Module is one module of a project. Its fields are the keys of the file, without the
// "sha256:" that the file has before some hashes.
type Module struct {
	Name    string
	Version string // from the module's manifest; can be empty
	// Source is oci://HOST/REPOSITORY@sha256:HEX, with or without a :TAG before the @, or
	// https://..., or the path of a file in the project, with slashes, relative to the
	// lock file.
	Source string
	// ManifestDigest is the digest of the OCI manifest, "sha256:HEX", as in an oci://
	// source. Empty: the source is no registry.
	ManifestDigest string
	Digest         string // SHA-256 of the module in hex
	Bytes          int64
	// Wants lists the access that its tools ask for, in words for reviewers; can be empty.
	Wants       string
	Fingerprint tool.Fingerprint // covers all tools together
	// Signer is the publisher that has signed the module, according to the file, and Keys are
	// the IDs of its keys, sorted. Empty: nobody has signed it. Neither is verified.
	Signer string
	Keys   []string
}

// IsOCI reports whether the module comes from a registry.
func (m Module) IsOCI() bool { return strings.HasPrefix(m.Source, "oci://") }

// IsLocal reports whether the module is a file in the project's folder.
func (m Module) IsLocal() bool { return !strings.Contains(m.Source, "://") }

// field is a key of the file, with functions that read and write its field of a [Module].
type field struct {
	keys.Key
	label    string // name of the field where [Diff] lists a change
	required bool
	get      func(Module) any // returns a string, a []string or an int64
	set      func(*Module, any)
}

func (f field) keyName() string { return strings.TrimPrefix(f.Name, tableName+"[].") }

// hashField returns a required field for a hash, written as "sha256:HEX" in the file and
// as HEX in the [Module].
func hashField(name, label string, at func(*Module) *string) field {
	return field{keys.Key{Name: tableName + "[]." + name, Kind: text(checkHash)}, label, true,
		func(m Module) any { return prefix + *at(&m) },
		func(m *Module, v any) { *at(m) = strings.TrimPrefix(v.(string), prefix) }}
}

func textField(name string, required bool, check func(string) error, at func(*Module) *string) field {
	return field{keys.Key{Name: tableName + "[]." + name, Kind: text(check)}, name, required,
		func(m Module) any { return *at(&m) },
		func(m *Module, v any) { *at(m) = v.(string) }}
}

const (
	tableName = "module"
	prefix    = "sha256:"
)

// fields are the keys of a module, in the order of the file.
var fields = []field{
	textField("name", true, tool.CheckName, func(m *Module) *string { return &m.Name }),
	textField("version", false, checkText, func(m *Module) *string { return &m.Version }),
	textField("source", true, checkSource, func(m *Module) *string { return &m.Source }),
	textField("manifest", false, checkHash, func(m *Module) *string { return &m.ManifestDigest }),
	hashField("digest", "the module itself", func(m *Module) *string { return &m.Digest }),
	{keys.Key{Name: tableName + "[].bytes", Kind: keys.Integer(1, maxBytes, "bytes")}, "bytes", true,
		func(m Module) any { return m.Bytes }, func(m *Module, v any) { m.Bytes = int64(v.(int)) }},
	textField("wants", false, checkWants, func(m *Module) *string { return &m.Wants }),
	hashField("description", "what its tools say that they do", func(m *Module) *string { return &m.Fingerprint.Description }),
	hashField("schema", "which arguments its tools take", func(m *Module) *string { return &m.Fingerprint.Schema }),
	hashField("needs", "what its tools ask for", func(m *Module) *string { return &m.Fingerprint.Needs }),
	{keys.Key{Name: tableName + "[].signer", Kind: text(checkText)}, "claimed signer", false,
		func(m Module) any { return m.Signer }, func(m *Module, v any) { m.Signer = v.(string) }},
	{keys.Key{Name: tableName + "[].keys", Kind: keys.List("IDs of keys", `["SHA256:abc"]`, maxKeys, checkText)}, "claimed keys", false,
		func(m Module) any { return m.Keys }, func(m *Module, v any) { m.Keys = v.([]string) }},
}

// table holds all keys of the file: the fields, and after them the version of the format.
var table = append(keys.TableOf(fields, func(f field) keys.Key { return f.Key }), keys.Key{Name: "version", Kind: keys.Integer(1, 0, "")})

func text(check func(string) error) keys.Kind { return keys.Text("text", "a string", check) }

// Parse reads a lock file. name is for its errors, which are *keys.Error values, joined.
// Two modules with the same name are an error, and names are compared without regard to
// case. The order of modules and keys, and comments, mean nothing, so that people can
// merge two branches by hand.
func Parse(name string, data []byte) (*File, error) {
	parsed, err := table.Parse(name, data, nil)
	if err != nil {
		return nil, err
	}
	f := &File{}
	var heads []keys.Setting
	var has []map[int]bool // by module: the indexes of the fields that the file sets
	version := 0
	for _, s := range parsed.Settings {
		switch {
		case s.Key < 0:
			f.Modules, heads, has = append(f.Modules, Module{}), append(heads, s), append(has, map[int]bool{})
		case s.Key == len(fields):
			version = s.Value.(int)
		default:
			fields[s.Key].set(&f.Modules[s.Index], s.Value)
			has[s.Index][s.Key] = true
		}
	}
	switch n := len(f.Modules); {
	case version == 0:
		return nil, &keys.Error{Path: name, Message: `the key "version" is missing; write version = 1 at the top`}
	case version > 1:
		return nil, &keys.Error{Path: name, Message: fmt.Sprintf("a newer stockade has written it (version %d of its form); use that one", version)}
	case n > maxModules:
		return nil, &keys.Error{Path: name, Message: fmt.Sprintf("it names %d modules, more than the limit of %d", n, maxModules)}
	}
	seen, all := map[string]bool{}, int64(0)
	for i := range f.Modules {
		m := &f.Modules[i]
		if all += m.Bytes; all > maxTotalBytes {
			return nil, &keys.Error{Path: name, Message: fmt.Sprintf("its modules have more than %d bytes together", maxTotalBytes)}
		}
		for k, field := range fields {
			if field.required && !has[i][k] {
				parsed.Fail(heads[i], fmt.Errorf("the key %q is missing", field.keyName()))
			}
		}
		if err := m.check(); err != nil {
			parsed.Fail(heads[i], err)
		}
		lower := strings.ToLower(m.Name)
		if seen[lower] && lower != "" {
			parsed.Fail(heads[i], fmt.Errorf("there are two modules with the name %q", m.Name))
		}
		seen[lower] = true
	}
	if err := parsed.Err(); err != nil {
		return nil, err
	}
	f.sort()
	return f, nil
}

// check returns an error if fields contradict each other.
func (m *Module) check() error {
	if (m.Signer == "") != (len(m.Keys) == 0) {
		return errors.New("signer and keys go together: who signed is told by the keys")
	}
	if _, digest, _ := strings.Cut(m.Source, "@"); m.IsOCI() && digest != m.ManifestDigest {
		return fmt.Errorf("the source names the manifest %s, and the key manifest %q; they have to be the same", digest, m.ManifestDigest)
	}
	if !m.IsOCI() && m.ManifestDigest != "" {
		return errors.New("only what comes from a registry has a manifest")
	}
	return nil
}

// sort sorts modules and keys, and removes duplicate keys.
func (f *File) sort() {
	slices.SortFunc(f.Modules, func(a, b Module) int { return strings.Compare(a.Name, b.Name) })
	for i := range f.Modules {
		slices.Sort(f.Modules[i].Keys)
		f.Modules[i].Keys = slices.Compact(f.Modules[i].Keys)
	}
}

const head = `# The modules of this project, each pinned to its bytes. "stockade tool lock"
# writes this file. Commit it: whoever works on the project is
# asked once for all of it, and again with the difference when it has changed. It
# grants nothing.
version = 1
`

// Format returns the text of a lock file, which does not depend on the order of the modules.
// Format checks nothing: parse the text with [Parse] before you store it.
func Format(f *File) []byte {
	sorted := File{slices.Clone(f.Modules)}
	for i, m := range sorted.Modules {
		sorted.Modules[i].Keys = slices.Clone(m.Keys)
	}
	sorted.sort()
	var b strings.Builder
	b.WriteString(head)
	for _, m := range sorted.Modules {
		b.WriteString("\n[[" + tableName + "]]\n")
		for _, f := range fields {
			if v := keys.Format(f.get(m)); f.required || v != `""` && v != "[]" {
				fmt.Fprintf(&b, "%s = %s\n", f.keyName(), v)
			}
		}
	}
	return []byte(b.String())
}

func checkText(s string) error { return checkVisible(s, maxText) }

func checkWants(s string) error { return checkVisible(s, maxWants) }

// checkVisible returns an error unless s is 1 to maxBytes bytes of visible characters.
func checkVisible(s string, maxBytes int) error {
	switch {
	case s == "" || len(s) > maxBytes:
		return fmt.Errorf("it has %d bytes; write 1 to %d, or leave the key out", len(s), maxBytes)
	case !visible.IsLine(s):
		return fmt.Errorf("%.80q holds characters that do not show as what they are", s)
	}
	return nil
}

func checkHash(s string) error {
	if hex, ok := strings.CutPrefix(s, "sha256:"); !ok || len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "" {
		return fmt.Errorf("%.80q is not sha256: and 64 digits of 0-9 and a-f", s)
	}
	return nil
}

var (
	repositoryRE = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
	})
	tagRE    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`) })
	schemeRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`) })
)

// checkSource accepts the three forms of a source, each in one spelling only.
func checkSource(s string) error {
	if s == "" || len(s) > maxSource || !visible.IsLine(s) {
		return fmt.Errorf("a source has 1 to %d bytes that show as what they are", maxSource)
	}
	if rest, ok := strings.CutPrefix(s, "oci://"); ok {
		return checkOCI(rest)
	}
	if strings.HasPrefix(s, "https://") {
		return checkURL(s)
	}
	if schemeRE().MatchString(s) {
		return fmt.Errorf("%.80q is not oci://, https:// or a path in the project", s)
	}
	if path.IsAbs(s) || path.Clean(s) != s || s == "." || s == ".." || strings.HasPrefix(s, "../") || strings.ContainsAny(s, `\:`) {
		return fmt.Errorf("%.80q is not a path in the project; write it relative to this file, with slashes and without ..", s)
	}
	return nil
}

func checkOCI(s string) error {
	named, digest, ok := strings.Cut(s, "@")
	if !ok {
		return fmt.Errorf("%.80q is not pinned; write oci://HOST/REPOSITORY@sha256:HEX", s)
	}
	if err := checkHash(digest); err != nil {
		return err
	}
	host, repository, _ := strings.Cut(named, "/")
	if err := checkHost(host); err != nil {
		return err
	}
	repository, tag, tagged := strings.Cut(repository, ":")
	if len(repository) > 255 || !repositoryRE().MatchString(repository) || tagged && !tagRE().MatchString(tag) {
		return fmt.Errorf("%.80q is not HOST/REPOSITORY or HOST/REPOSITORY:TAG", named)
	}
	return nil
}

func checkHost(host string) error {
	normal, err := tool.NormalHost(host)
	if err == nil && normal != host {
		err = fmt.Errorf("host %.80q is written %q", host, normal)
	}
	return err
}

func checkURL(s string) error {
	u, err := url.Parse(s)
	if err != nil {
		return fmt.Errorf("%.80q is no address", s)
	}
	if err := checkHost(u.Host); err != nil {
		return err
	}
	switch {
	case u.User != nil:
		return errors.New("an address here holds no name and no password")
	case u.Fragment != "" || u.RawPath != "" || u.String() != s:
		return fmt.Errorf("%.80q is not the plain form of an address: no # and nothing escaped that needs not be", s)
	case path.Clean(u.Path) != u.Path || u.Path == "/":
		return fmt.Errorf("%.80q does not name a file; write it without .. and //", s)
	}
	return nil
}
