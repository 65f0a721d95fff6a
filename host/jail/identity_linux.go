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

// identityKeys are the settings of the user's git configuration that commands see. None of
// them makes git run anything.
var identityKeys = []string{"user.name", "user.email", "init.defaultbranch"}

const maxIdentity = 200 // bytes of a value; a setting with a longer value is left out

// gitConfig returns the text of a git configuration with the user's identity, from the
// configuration in the user's home; "": that has none. Included files are not read.
func gitConfig(home string) string {
	values := map[string]string{}
	for _, name := range []string{".config/git/config", ".gitconfig"} { // later values win
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

// readIdentity adds the settings of identityKeys in the text of a git configuration to values.
// It understands less than git: a value is one line. It leaves out a value with a backslash,
// an inner quote, a comment or a control character, and one of more than maxIdentity bytes.
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
