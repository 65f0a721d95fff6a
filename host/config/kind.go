package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// kind is what values a key takes. Its methods return the value in the type of
// the key's field. Their errors read on from "key: ".
type kind interface {
	// fromTOML checks a value as the TOML decoder returns it.
	fromTOML(v any) (any, error)
	// parse checks a value from the environment or from a flag.
	parse(text string) (any, error)
	// format writes a value as TOML.
	format(v any) string
	// String names the kind and its range for the reference.
	String() string
}

// wrongType says what a TOML value is and what was wanted.
func wrongType(v any, want string) error {
	return fmt.Errorf("it is %s; write %s", typeName(v), want)
}

func typeName(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case bool:
		return "a boolean"
	case time.Time:
		return "a date or time"
	case map[string]any:
		return "a table"
	case []any, []map[string]any:
		return "an array"
	}
	return "of an unknown type"
}

// integer is a whole number from min to max of some unit, which can be empty.
type integer struct {
	min, max int64
	unit     string
}

func (k integer) String() string {
	if k.unit == "" {
		return fmt.Sprintf("integer, %d to %d", k.min, k.max)
	}
	return fmt.Sprintf("integer, %d to %d %s", k.min, k.max, k.unit)
}

func (k integer) accepted() string {
	s := fmt.Sprintf("a whole number from %d to %d", k.min, k.max)
	if k.unit != "" {
		s += " (" + k.unit + ")"
	}
	return s
}

func (k integer) fromTOML(v any) (any, error) {
	n, ok := v.(int64)
	if !ok {
		return nil, wrongType(v, k.accepted())
	}
	if n < k.min || n > k.max {
		return nil, fmt.Errorf("%d is out of range; write %s", n, k.accepted())
	}
	if int64(int(n)) != n {
		return nil, fmt.Errorf("%d does not fit into the integers of this machine", n)
	}
	return int(n), nil
}

func (k integer) parse(text string) (any, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		if errors.Is(err, strconv.ErrRange) {
			return nil, fmt.Errorf("%.40s is out of range; write %s", text, k.accepted())
		}
		return nil, fmt.Errorf("%.40q is not %s", text, k.accepted())
	}
	return k.fromTOML(n)
}

func (k integer) format(v any) string { return strconv.Itoa(v.(int)) }

// duration is a time span, written as Go writes it.
type duration struct{ min, max time.Duration }

func (k duration) String() string {
	return fmt.Sprintf("duration, %s to %s", short(k.min), short(k.max))
}

func (k duration) accepted() string {
	return fmt.Sprintf(`a duration from %s to %s, such as "30s" or "2m"`, short(k.min), short(k.max))
}

func (k duration) fromTOML(v any) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, wrongType(v, k.accepted())
	}
	return k.parse(s)
}

func (k duration) parse(text string) (any, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, fmt.Errorf("%.40q is not %s", text, k.accepted())
	}
	if d < k.min || d > k.max {
		return nil, fmt.Errorf("%s is out of range; write %s", short(d), k.accepted())
	}
	return d, nil
}

func (k duration) format(v any) string { return strconv.Quote(short(v.(time.Duration))) }

// short writes whole seconds as people do: "300s", not "5m0s".
func short(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Second && d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return d.String()
}

// boolean is true or false.
type boolean struct{}

func (boolean) String() string { return "boolean" }

func (boolean) fromTOML(v any) (any, error) {
	b, ok := v.(bool)
	if !ok {
		return nil, wrongType(v, "true or false, without quotes")
	}
	return b, nil
}

func (boolean) parse(text string) (any, error) {
	switch text {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return nil, fmt.Errorf("%.40q is not true or false", text)
}

func (boolean) format(v any) string { return strconv.FormatBool(v.(bool)) }

// text is a string of at most that many bytes, of one line if line is set.
type text struct {
	most int
	line bool
}

func (k text) String() string { return fmt.Sprintf("string, at most %d bytes", k.most) }

func (k text) fromTOML(v any) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, wrongType(v, "a string in quotes")
	}
	return k.parse(s)
}

func (k text) parse(s string) (any, error) {
	if len(s) > k.most {
		return nil, fmt.Errorf("it has %d bytes; at most %d are accepted", len(s), k.most)
	}
	if k.line && strings.ContainsFunc(s, unicode.IsControl) {
		return nil, errors.New("it holds a line break or another control character; write one line")
	}
	return s, nil
}

func (text) format(v any) string { return quote(v.(string)) }

// choice is one of a few words.
type choice []string

func (k choice) String() string { return "one of " + k.list() }

func (k choice) list() string {
	quoted := make([]string, len(k))
	for i, w := range k {
		quoted[i] = strconv.Quote(w)
	}
	return strings.Join(quoted, ", ")
}

func (k choice) fromTOML(v any) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, wrongType(v, "one of "+k.list())
	}
	return k.parse(s)
}

func (k choice) parse(s string) (any, error) {
	if !slices.Contains(k, s) {
		return nil, fmt.Errorf("%.80q is not one of %s", s, k.list())
	}
	return s, nil
}

func (choice) format(v any) string { return quote(v.(string)) }

// baseURL is an http or https address, or empty.
type baseURL struct{}

func (baseURL) String() string { return "URL, http or https" }

const acceptedURL = `an address such as "https://host/v1"`

func (k baseURL) fromTOML(v any) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, wrongType(v, acceptedURL)
	}
	return k.parse(s)
}

func (baseURL) parse(s string) (any, error) {
	if s == "" {
		return s, nil
	}
	// Errors do not repeat the value: people put keys into addresses.
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || len(s) > 2048:
		return nil, errors.New("it is not an http or https URL; write " + acceptedURL)
	case u.User != nil:
		return nil, errors.New("it holds a user name or a password; a key belongs into the environment variable that model.api_key_env names")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("it has a query or a fragment; write " + acceptedURL)
	}
	return s, nil
}

func (baseURL) format(v any) string { return quote(v.(string)) }

// variable is the name of an environment variable.
type variable struct{}

var variableRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

func (variable) String() string { return "name of an environment variable" }

func (k variable) fromTOML(v any) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, wrongType(v, `the name of an environment variable, such as "OPENAI_API_KEY"`)
	}
	return k.parse(s)
}

func (variable) parse(s string) (any, error) {
	if !variableRE.MatchString(s) {
		// The value is not repeated: it may be a key.
		return nil, errors.New(`it is not the name of an environment variable; write a name such as "OPENAI_API_KEY", never the key itself`)
	}
	return s, nil
}

func (variable) format(v any) string { return quote(v.(string)) }

// mounts is a list of directories.
type mounts struct{}

const (
	readOnlySuffix  = ":ro"
	maxMounts       = 64
	acceptedMounts  = `a list such as ["/data", "~/notes:ro"]`
	mountsSeparator = "," // in the environment
)

func (mounts) String() string { return `list of "PATH" or "PATH:ro"` }

func (k mounts) fromTOML(v any) (any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, wrongType(v, acceptedMounts)
	}
	entries := make([]string, len(list))
	for i, e := range list {
		if entries[i], ok = e.(string); !ok {
			return nil, fmt.Errorf("entry %d is %s; write %s", i+1, typeName(e), acceptedMounts)
		}
	}
	return k.check(entries)
}

func (k mounts) parse(s string) (any, error) {
	if s == "" {
		return []Mount(nil), nil
	}
	return k.check(strings.Split(s, mountsSeparator))
}

func (mounts) check(entries []string) (any, error) {
	if len(entries) > maxMounts {
		return nil, fmt.Errorf("it has %d entries; at most %d are accepted", len(entries), maxMounts)
	}
	var out []Mount
	for _, e := range entries {
		path, ro := strings.CutSuffix(e, readOnlySuffix)
		switch {
		case strings.ContainsFunc(path, unicode.IsControl):
			return nil, fmt.Errorf("%.80q holds a control character", e)
		case strings.HasSuffix(path, ":rw"):
			return nil, fmt.Errorf("%.80q: the only suffix is %q; a mount without it can be written to", e, readOnlySuffix)
		case !filepath.IsAbs(path) && path != "~" && !strings.HasPrefix(path, "~/"):
			return nil, fmt.Errorf(`%.80q is not an absolute path; write one, or one that begins with "~/"`, e)
		}
		out = append(out, Mount{Path: path, ReadOnly: ro})
	}
	return out, nil
}

func (mounts) format(v any) string {
	var entries []string
	for _, m := range v.([]Mount) {
		entries = append(entries, quote(m.String()))
	}
	return "[" + strings.Join(entries, ", ") + "]"
}

// quote writes a TOML basic string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsControl(r):
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
