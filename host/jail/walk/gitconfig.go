package walk

import (
	"fmt"
	"slices"
	"strings"
)

// harmlessKeys are keys of a git configuration with which git runs nothing. A star
// is a subsection.
var harmlessKeys = []string{
	"core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase", "core.symlinks",
	"core.precomposeunicode", "remote.*.url", "remote.*.fetch", "branch.*.remote", "branch.*.merge", "submodule.active", "user.name", "user.email",
	"init.defaultbranch",
}

// harmlessConfig is an error unless a git configuration has only keys with which
// git runs nothing. It takes less than git does: what git writes itself where
// nothing has to be quoted.
func harmlessConfig(text string) error {
	section, sub := "", ""
	n := 0
	for line := range strings.Lines(text) {
		n++
		refuse := func(what string) error { return fmt.Errorf("line %d: %s", n, what) }
		line = strings.Trim(strings.TrimSuffix(line, "\n"), " \t")
		if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return refuse("a control character")
		}
		switch {
		case line == "":
		case line[0] == '#' || line[0] == ';':
		case strings.ContainsAny(line, `\`):
			return refuse("a backslash")
		case line[0] == '[':
			inner, ok := strings.CutSuffix(line[1:], "]")
			name, quoted, subsection := strings.Cut(inner, ` "`)
			if subsection {
				quoted, subsection = strings.CutSuffix(quoted, `"`)
				ok = ok && subsection
			}
			if !ok || !keyName(name) || strings.ContainsAny(quoted, `"[]`) {
				return refuse("a section that is not simple")
			}
			section, sub = strings.ToLower(name), ""
			if subsection {
				sub = ".*"
			}
		default:
			key, value, ok := strings.Cut(line, "=")
			key, value = strings.TrimRight(key, " \t"), strings.TrimLeft(value, " \t")
			if !ok || !keyName(key) || strings.ContainsAny(value, `"#;`) {
				return refuse("a value that is not simple")
			}
			full := section + sub + "." + strings.ToLower(key)
			if !slices.Contains(harmlessKeys, full) {
				return refuse(fmt.Sprintf("the key %s", full))
			}
			// "ext::" and the like name a program.
			if strings.Contains(value, "::") || strings.HasPrefix(value, "-") {
				return refuse(fmt.Sprintf("the value of %s", full))
			}
		}
	}
	return nil
}

// keyName reports whether a name is one of a section or a key.
func keyName(name string) bool {
	return name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
