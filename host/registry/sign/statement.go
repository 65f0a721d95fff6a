package sign

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// statementType is the value of the first key in a statement. It keeps signed bytes from being
// taken for another kind of document.
const statementType = "https://github.com/stockade-dev/stockade/module/v1"

// Statement is the content of a signature: the signer vouches for this module. It is JSON
// of a few hundred bytes.
type Statement struct {
	// Repository is HOST/REPOSITORY without a tag, the place of publication. Empty: the
	// module is a file that is published nowhere.
	Repository  string
	Name        string      // name of the module, as in its manifest
	Version     string      // version of the module, semantic, without v: 1.2.0
	Digest      string      // SHA-256 of the bytes of the module: "sha256:HEX"
	Fingerprint Fingerprint // hashes of the descriptions of its tools
	// Issued is the time of signing, and Expires the time after which the signature does
	// not hold; zero: it does not expire. Both are whole seconds of UTC.
	Issued, Expires time.Time
}

// Fingerprint has the fields of tool.Fingerprint, to which it converts.
type Fingerprint struct {
	Description, Schema, Needs string // SHA-256, in hex
}

var (
	// The complete expression of semver.org.
	versionRE = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)` +
			`(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
			`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)
	})

	// A host with an optional port, and path components by the OCI distribution
	// specification; neither can be "..".
	hostRE = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:]+\])(:[0-9]{1,5})?$`)
	})
	pathRE = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	})
)

const (
	maxVersionBytes    = 128
	maxRepositoryBytes = 512
)

// ValidRepository reports whether s is HOST/REPOSITORY, in lower case and at most 512 bytes.
func ValidRepository(s string) bool {
	host, path, _ := strings.Cut(s, "/")
	return len(s) <= maxRepositoryBytes && ValidHost(host) && pathRE().MatchString(path)
}

// ValidHost reports whether s is HOST or HOST:PORT, in lower case and at most 512 bytes.
func ValidHost(s string) bool { return len(s) <= maxRepositoryBytes && hostRE().MatchString(s) }

// ValidDigest reports whether s is "sha256:" and 64 hex digits in lower case.
func ValidDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && isHex(hex, 64)
}

func isHex(s string, n int) bool { return len(s) == n && strings.Trim(s, "0123456789abcdef") == "" }

// ValidVersion reports whether s is a semantic version without v, of at most 128 bytes.
func ValidVersion(s string) bool { return len(s) <= maxVersionBytes && versionRE().MatchString(s) }

// ValidName reports whether a module may have the name s.
func ValidName(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

func (s Statement) check() error {
	switch {
	case s.Repository != "" && !ValidRepository(s.Repository):
		return fmt.Errorf("repository %.80q is not HOST/REPOSITORY in lower case", s.Repository)
	case !ValidName(s.Name):
		return fmt.Errorf("name %.80q is not 1 to 64 letters, digits, '_' or '-'", s.Name)
	case !ValidVersion(s.Version):
		return fmt.Errorf("version %.80q is not a semantic version such as 1.2.0", s.Version)
	case !ValidDigest(s.Digest):
		return fmt.Errorf(`digest %.80q is not "sha256:" and 64 hexadecimal digits in lower case`, s.Digest)
	case !isHex(s.Fingerprint.Description, 64) || !isHex(s.Fingerprint.Schema, 64) || !isHex(s.Fingerprint.Needs, 64):
		return errors.New("a fingerprint is not 64 hexadecimal digits in lower case")
	case s.Issued.IsZero():
		return errors.New("it does not say when it was issued")
	case !s.Expires.IsZero() && !s.Expires.After(s.Issued):
		return errors.New("it expires before it was issued")
	}
	return nil
}

type statementJSON struct {
	Type        string          `json:"type"`
	Repository  string          `json:"repository,omitempty"`
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Digest      string          `json:"digest"`
	Fingerprint fingerprintJSON `json:"fingerprint"`
	Issued      string          `json:"issued"`
	Expires     string          `json:"expires,omitempty"`
}

type fingerprintJSON struct {
	Description string `json:"description"`
	Schema      string `json:"schema"`
	Needs       string `json:"needs"`
}

// marshal returns the bytes to sign. It is an error if [parseStatement] could not read them.
func (s Statement) marshal() ([]byte, error) {
	s.Issued = s.Issued.UTC().Truncate(time.Second)
	out := statementJSON{
		Type: statementType, Repository: s.Repository, Name: s.Name, Version: s.Version, Digest: s.Digest,
		Fingerprint: fingerprintJSON(s.Fingerprint), Issued: s.Issued.Format(time.RFC3339),
	}
	if !s.Expires.IsZero() {
		out.Expires = s.Expires.UTC().Truncate(time.Second).Format(time.RFC3339)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	_, err = parseStatement(data)
	return data, err
}

// parseStatement reads a statement. An unknown key is refused: it could restrict the rest.
func parseStatement(data []byte) (s Statement, err error) {
	o, err := parse(data)
	if err != nil {
		return s, err
	}
	if kind, err := takeKey[string](o, "type", false); err != nil {
		return s, err
	} else if kind != statementType {
		return s, fmt.Errorf("it is a %.80q, which this version does not know", kind)
	}
	var prints object
	if prints, err = takeKey[object](o, "fingerprint", false); err != nil {
		return s, err
	}
	var issued, expires string
	for _, f := range []struct {
		from     object
		key      string
		optional bool
		to       *string
	}{
		{o, "repository", true, &s.Repository}, {o, "name", false, &s.Name}, {o, "version", false, &s.Version}, {o, "digest", false, &s.Digest},
		{prints, "description", false, &s.Fingerprint.Description}, {prints, "schema", false, &s.Fingerprint.Schema}, {prints, "needs", false, &s.Fingerprint.Needs},
		{o, "issued", false, &issued}, {o, "expires", true, &expires},
	} {
		if *f.to, err = takeKey[string](f.from, f.key, f.optional); err != nil {
			return Statement{}, err
		}
	}
	for _, o := range []object{o, prints} {
		if err := checkNoneLeft(o); err != nil {
			return Statement{}, err
		}
	}
	if s.Issued, err = instant(issued); err != nil {
		return Statement{}, fmt.Errorf("issued: %w", err)
	}
	if expires != "" {
		if s.Expires, err = instant(expires); err != nil {
			return Statement{}, fmt.Errorf("expires: %w", err)
		}
	}
	if err := s.check(); err != nil {
		return Statement{}, err
	}
	return s, nil
}

// instant reads a time in the only format that we write. A year before 1970 is an error:
// nobody means it, and the zero time means that there is no time.
func instant(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.Year() < 1970 || t.UTC().Truncate(time.Second).Format(time.RFC3339) != s {
		return time.Time{}, fmt.Errorf("%.40q is not a time such as 2026-01-31T12:00:00Z", s)
	}
	return t, nil
}
