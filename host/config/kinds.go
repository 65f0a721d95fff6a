package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/stockade-dev/stockade/host/config/keys"
)

// text returns the kind of a string of at most maxBytes bytes. With line, it must be one line.
func text(maxBytes int, line bool) keys.Kind {
	return keys.Text(fmt.Sprintf("string, at most %d bytes", maxBytes), "a string in quotes", func(s string) error {
		switch {
		case len(s) > maxBytes:
			return fmt.Errorf("it has %d bytes; at most %d are accepted", len(s), maxBytes)
		case line && strings.ContainsFunc(s, unicode.IsControl):
			return errors.New("it holds a line break or another control character; write one line")
		}
		return nil
	})
}

const (
	acceptedURL   = `an address such as "https://host/v1"`
	acceptedProxy = `an address such as "http://proxy.example:3128"`
)

// baseURL is the kind of the address of a provider or a search engine; empty: the default.
var baseURL = address("URL, http or https", acceptedURL, func(u *url.URL) error {
	switch {
	case u.User != nil:
		return errors.New("it holds a user name or a password; a key belongs into the environment variable that model.api_key_env names")
	}
	query, err := url.ParseQuery(u.RawQuery)
	delete(query, "api-version")
	if err != nil || len(query) > 0 { // a parameter may be a key
		return errors.New("it has a query with more than api-version; write " + acceptedURL)
	}
	return nil
})

// proxyURL is the kind of the address of a proxy; empty: none.
var proxyURL = address("URL of a proxy, http or https", acceptedProxy, func(u *url.URL) error {
	switch {
	case u.User != nil:
		return errors.New("it holds a user name or a password, and secrets are never in a file")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("it has a path; write " + acceptedProxy)
	}
	return nil
})

// address returns the kind of an http or https URL, which may be empty. Its errors do not
// repeat the value: people put keys and passwords into addresses.
func address(what, accepted string, check func(*url.URL) error) keys.Kind {
	return keys.Text(what, accepted, func(s string) error {
		if s == "" {
			return nil
		}
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || len(s) > 2048 {
			return errors.New("it is not an http or https URL; write " + accepted)
		}
		return check(u)
	})
}

var variableRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`) })

// variable is the kind of the name of an environment variable, or empty.
var variable = keys.Text("name of an environment variable", `the name of an environment variable, such as "OPENAI_API_KEY"`, func(s string) error {
	if s != "" && !variableRE().MatchString(s) {
		// The value is not repeated: it may be a key.
		return errors.New(`it is not the name of an environment variable; write a name such as "OPENAI_API_KEY", never the key itself`)
	}
	return nil
})

var (
	secretNameRE  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`) })
	profileNameRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`) })
)

// secretName is the kind of the name of a secret, or empty.
var secretName = keys.Text("name of a secret", `the name of a secret, as "stockade secret list" shows it`, func(s string) error {
	switch {
	case LooksLikeKey(s):
		return errors.New(`that looks like a key, and keys are never in a file; keep it with "stockade secret set NAME", and write NAME`)
	case s != "" && !secretNameRE().MatchString(s):
		return errors.New("it is no name of a secret: write 1 to 64 letters, digits, '_' or '-', the first a letter") // without the value, which may be a key
	}
	return nil
})

// LooksLikeKey reports whether a text has more than 20 bytes and begins like the API keys of
// some known providers. People paste keys into wrong lines.
func LooksLikeKey(s string) bool {
	return len(s) > 20 && slices.ContainsFunc([]string{"sk-", "gsk_", "AIza", "xai-", "LLM|"}, func(begin string) bool { return strings.HasPrefix(s, begin) })
}

// profileName is the kind of the name of a profile, or empty. [ModelProfile] counts as one.
var profileName = keys.Text("name of a profile", "the name of a profile in quotes", func(s string) error {
	if s == "" || s == ModelProfile {
		return nil
	}
	return checkProfileName(s)
})

// profileNames is the kind of a list of profiles. [Config.Check] finds names without a
// profile, when all layers are set.
var profileNames = keys.List("names of profiles", `["local"]`, 8, func(s string) error {
	if s == ModelProfile {
		return nil
	}
	return checkProfileName(s)
})

// reasoning is the kind of a model's effort in thinking; empty: the provider's default.
var reasoning = keys.Choice("", "low", "medium", "high")

// rules returns the kind of a list of network rules. Package network parses them; here a rule
// only has to be one word.
func rules(example string) keys.Kind {
	return keys.List("rules", example, 256, func(s string) error {
		if s == "" || len(s) > 512 || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == ',' }) {
			return fmt.Errorf("%.80q: it is no rule; write one such as api.example.com or http://127.0.0.1:8080", s)
		}
		return nil
	})
}

var cacheNames = []string{"go", "npm", "cargo", "pip"}

var caches = keys.List("names of caches", `["go", "npm"]`, 0, keys.OneOf(cacheNames...))

var toolNameRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) })

// toolNames is the kind of a list of tools and modules. Names that do not exist are found
// later, when all tools are known.
var toolNames = keys.List("names of tools and modules", `["git", "web_search"]`, 256, func(s string) error {
	if !toolNameRE().MatchString(s) {
		return fmt.Errorf("%.80q: no tool and no module can be called that", s)
	}
	return nil
})

// factNames are the names of the facts that the tool system_info can report.
var factNames = []string{"os", "distribution", "arch", "cpus", "memory", "timezone", "tier", "version"}

var systemFacts = keys.List("names", `["os", "arch"]`, 0, keys.OneOf(factNames...))

// paths is the kind of a list of paths of files.
var paths = keys.List("paths", `["/etc/company/ca.pem"]`, 64, func(s string) error {
	if strings.ContainsFunc(s, unicode.IsControl) || !filepath.IsAbs(s) && !strings.HasPrefix(s, "~/") {
		return fmt.Errorf(`%.80q: it is not an absolute path; write one, or one that begins with "~/"`, s)
	}
	return nil
})

const readOnlySuffix = ":ro"

// mounts is the kind of a list of directories, written PATH or PATH:ro (read-only).
var mounts = keys.List(`"PATH" or "PATH:ro"`, `["/data", "~/notes:ro"]`, 64, func(s string) error {
	path := parseMount(s).Path
	switch {
	case strings.ContainsFunc(path, unicode.IsControl):
		return fmt.Errorf("%.80q holds a control character", s)
	case strings.HasSuffix(path, ":rw"):
		return fmt.Errorf("%.80q: the only suffix is %q; a mount without it can be written to", s, readOnlySuffix)
	case !filepath.IsAbs(path) && path != "~" && !strings.HasPrefix(path, "~/"):
		return fmt.Errorf(`%.80q is not an absolute path; write one, or one that begins with "~/"`, s)
	}
	return nil
})

func parseMount(s string) Mount {
	path, ro := strings.CutSuffix(s, readOnlySuffix)
	return Mount{Path: path, ReadOnly: ro}
}

func parseMounts(texts []string) (out []Mount) {
	for _, s := range texts {
		out = append(out, parseMount(s))
	}
	return out
}

func mountTexts(mounts []Mount) (out []string) {
	for _, m := range mounts {
		out = append(out, m.String())
	}
	return out
}
