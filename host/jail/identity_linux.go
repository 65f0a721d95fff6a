package jail

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"
)

// identityKeys are what commands see of the user's configuration of git. It names
// nothing that git runs.
var identityKeys = []string{"user.name", "user.email", "init.defaultbranch"}

const maxIdentity = 200 // bytes of a value

// gitConfig is a configuration of git with who the user is, from that of a home;
// empty if that does not say. Included files are not read.
func gitConfig(home string) string {
	values := map[string]string{}
	for _, name := range []string{".config/git/config", ".gitconfig"} { // the later one wins
		if f, err := os.OpenFile(filepath.Join(home, name), os.O_RDONLY|unix.O_NONBLOCK, 0); err == nil {
			text, _ := io.ReadAll(io.LimitReader(f, 1<<20))
			f.Close()
			readIdentity(string(text), values)
		}
	}
	var out strings.Builder
	for _, key := range identityKeys {
		if v := values[key]; v != "" {
			section, name, _ := strings.Cut(key, ".")
			fmt.Fprintf(&out, "[%s]\n\t%s = \"%s\"\n", section, name, v)
		}
	}
	return out.String()
}

// readIdentity reads the identity keys of a configuration of git. It takes less
// than git does: one line is one value, without anything to be unquoted.
func readIdentity(text string, values map[string]string) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.ToLower(strings.Trim(line, "[]"))
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key, value = section+"."+strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
			value = value[1 : len(value)-1]
		}
		for _, k := range identityKeys {
			if k == key && len(value) <= maxIdentity && !strings.ContainsAny(value, `"\#;`) && !strings.ContainsFunc(value, unicode.IsControl) {
				values[k] = value
			}
		}
	}
}
