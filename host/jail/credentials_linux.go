package jail

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/redact"
)

// Limits in bytes. Credentials beyond them are not redacted.
const (
	maxConfigBytes     = 1 << 20   // bytes of a configuration that are read
	maxCredentialBytes = 4 << 10   // bytes of one credential, with its key or the part of the URL around it
	maxCredentials     = 128 << 10 // bytes of a configuration's credentials, with the text around them
)

// credentialURL matches user, password and @ in URLs like https://USER:PASSWORD@HOST and
// https://TOKEN@HOST. credentialLine matches a setting: its key, the separator and the value.
var (
	credentialURL  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://([^\s/"'\\]+)(@[^\s/@"'\\]*)`) })
	credentialLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^[ \t]*(?:\[[^\]\n]*\][ \t]*)?([A-Za-z][A-Za-z0-9-]*)([ \t]*=[ \t]*)("[^"\n]*|[^"\n;#]*)`)
	})
)

// isCredential reports whether a setting of git, or of an extension of git, holds a
// credential. name is the last part of its key, in lower case.
func isCredential(name string) bool {
	return slices.Contains([]string{"extraheader", "pass", "smtppass", "dbpass", "password", "secret"}, name) || strings.HasSuffix(name, "token")
}

// redactGitCredentials makes own remove the credentials in the git configuration of the
// workspace, each only together with the URL or the key around it. Git has to read the file,
// but the command's output need not repeat them. Only configurations at the root of mounts
// that contain dir are read; those of repositories below are text like any other.
func (p *plan) redactGitCredentials(dir string, own *redact.Redactor) {
	for _, m := range p.mounts {
		if !paths.In(dir, m.Host) {
			continue
		}
		// The file may be a named pipe, for example, from which a read would never return.
		f, err := os.OpenFile(filepath.Join(m.Host, ".git", "config"), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		text, _ := io.ReadAll(io.LimitReader(f, maxConfigBytes))
		f.Close()
		own.AddContextValues(credentialsIn(string(text))...)
	}
}

// credentialsIn returns the credentials of a configuration with their surrounding text: as in
// the file, and as git prints them.
func credentialsIn(config string) (places []redact.ContextValue) {
	left := maxCredentials
	add := func(before, value, after string) {
		if n := len(before) + len(value) + len(after); n <= min(left, maxCredentialBytes) {
			left -= n
			places = append(places, redact.ContextValue{Before: before, Value: value, After: after})
		}
	}
	for _, url := range credentialURL().FindAllStringSubmatch(config, -1) {
		user, password, both := strings.Cut(url[1], ":")
		switch {
		case both:
			add("://"+user+":", password, url[2])
		case len(user) >= redact.MinBytes: // otherwise it is a name like "git"
			add("://", user, url[2])
		}
	}
	for _, line := range credentialLine().FindAllStringSubmatch(config, -1) {
		key, value := line[1], strings.TrimRight(strings.TrimPrefix(line[3], `"`), " \t\r\\")
		name := strings.ToLower(key)
		if !isCredential(name) || len(value) < redact.MinBytes {
			continue
		}
		behind := line[2] + line[3][:strings.Index(line[3], value)]
		for _, key := range []string{key, name} {
			for _, between := range []string{behind, " = ", "=", " ", "\n"} {
				add(key+between, value, "")
			}
		}
		if header, rest, ok := strings.Cut(value, ": "); ok { // git config prints the value without the key
			add(header+": ", rest, "")
		}
	}
	return places
}
