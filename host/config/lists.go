package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"unicode"
)

// list is some strings, each of which passes check.
type list struct {
	what    string // they are, for the reference
	most    int
	example string
	check   func(string) error
}

func (k list) String() string { return "list of " + k.what }

func (k list) fromTOML(v any) (any, error) {
	values, ok := v.([]any)
	if !ok {
		return nil, wrongType(v, "a list such as "+k.example)
	}
	entries := make([]string, len(values))
	for i, e := range values {
		if entries[i], ok = e.(string); !ok {
			return nil, fmt.Errorf("entry %d is %s; write a list such as %s", i+1, typeName(e), k.example)
		}
	}
	return k.all(entries)
}

func (k list) parse(s string) (any, error) {
	if s == "" {
		return []string(nil), nil
	}
	return k.all(strings.Split(s, ","))
}

func (k list) all(entries []string) (any, error) {
	if len(entries) > k.most {
		return nil, fmt.Errorf("it has %d entries; at most %d are accepted", len(entries), k.most)
	}
	for _, e := range entries {
		if err := k.check(e); err != nil {
			return nil, fmt.Errorf("%.80q: %w", e, err)
		}
	}
	if len(entries) == 0 {
		return []string(nil), nil
	}
	return entries, nil
}

func (list) format(v any) string {
	var entries []string
	for _, e := range v.([]string) {
		entries = append(entries, quote(e))
	}
	return "[" + strings.Join(entries, ", ") + "]"
}

// checkRule leaves what a rule means to policy; here it only has to be a word.
func checkRule(s string) error {
	if s == "" || len(s) > 512 || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == ',' }) {
		return errors.New("it is no rule; write one such as api.example.com or http://127.0.0.1:8080")
	}
	return nil
}

func checkPath(s string) error {
	if strings.ContainsFunc(s, unicode.IsControl) || !filepath.IsAbs(s) && !strings.HasPrefix(s, "~/") {
		return errors.New(`it is not an absolute path; write one, or one that begins with "~/"`)
	}
	return nil
}

// proxyURL is the address of a proxy, or empty.
type proxyURL struct{}

const acceptedProxy = `an address such as "http://proxy.example:3128"`

func (proxyURL) String() string { return "URL of a proxy, http or https" }

func (k proxyURL) fromTOML(v any) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, wrongType(v, acceptedProxy)
	}
	return k.parse(s)
}

func (proxyURL) parse(s string) (any, error) {
	if s == "" {
		return s, nil
	}
	// Errors do not repeat the value: people put passwords into addresses.
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || len(s) > 2048:
		return nil, errors.New("it is not an http or https URL; write " + acceptedProxy)
	case u.User != nil:
		return nil, errors.New("it holds a user name or a password, and secrets are never in a file")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("it has a path; write " + acceptedProxy)
	}
	return s, nil
}

func (proxyURL) format(v any) string { return quote(v.(string)) }
