package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/policy/gitconfig"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
)

// specialForCommand returns the special entry for a change by a command, which may have been
// git. find is [paths.SpecialForChange] or [paths.SpecialForMove]. Files that git writes in
// everyday use are not special here: changes in a repository are judged by their content.
func specialForCommand(c tool.Change, name string, find func(string) (paths.Special, bool)) (paths.Special, bool) {
	s, special := find(name)
	_, rel, inside := git.CutDir(name)
	switch {
	case !inside && c.InRepository && c.Before == nil && c.From == "" && newInRepository(c, name):
		return s, special
	case !inside && c.InRepository:
		return paths.RepositorySpecial, true
	case inside && !special:
		return specialInGit(c, rel)
	case !special || !inside:
		return s, special
	}
	gone := c.After == nil
	switch {
	case s.Care == paths.Asked && rel != "": // HEAD, or a branch of such a name
		return s, false
	case rel == "":
		// The files in a new .git are judged one by one.
		return s, gone || !c.After.Mode.IsDir() || c.Kind != tool.DirectoryCreated && c.Kind != tool.TimesChanged && c.Kind != tool.ModeChanged
	case rel == "hooks" && !gone && c.After.Mode.IsDir(), strings.HasPrefix(rel, "hooks/") && strings.HasSuffix(rel, ".sample") && c.Before == nil:
		return s, false
	case strings.HasSuffix(s.Pattern, "/config"):
		return specialForConfig(c, s)
	case s.WrittenByGit():
		s.Care = paths.Asked // the question shows what it would do
		return s, !gone
	}
	return s, true
}

// newInRepository reports whether a new file may be part of a new repository and makes git run
// nothing: a directory, a harmless configuration or a sample.
func newInRepository(c tool.Change, name string) bool {
	switch {
	case c.After.Mode.IsDir(): // the files in it are judged one by one
		return true
	case strings.HasSuffix(name, "/config"):
		text, err := configText(c.After)
		return err == nil && gitconfig.Harmless(text) == nil
	}
	return strings.HasSuffix(name, ".sample")
}

// replaceRefPrefix is the prefix of the references by which git replaces objects.
const replaceRefPrefix = "refs/replace/"

// specialInGit returns the special entry for a change in .git that no everyday command makes,
// and that the summary of a repository's changes would not show. rel is the path below .git.
func specialInGit(c tool.Change, rel string) (s paths.Special, special bool) {
	s = paths.Special{Pattern: ".git/" + rel, Care: paths.Asked}
	object := strings.HasPrefix(rel, "objects/") && !strings.HasPrefix(rel, "objects/info/") && c.Kind == tool.Modified
	switch {
	case strings.HasPrefix(rel, "remotes/"), strings.HasPrefix(rel, "branches/"):
		s.What, s.Why = "the definition of a remote", "it names the places that git pulls from and pushes to"
	case rel == "objects/info/alternates", rel == "objects/info/http-alternates":
		s.What, s.Why = "a second place for a repository's objects", "git uses the objects there as its own"
	case strings.HasPrefix(rel, replaceRefPrefix), rel == "info/grafts", rel == "shallow":
		s.What, s.Why = "a replacement for an object of a repository", "git shows the replacement instead of the object"
	case object && !strings.HasSuffix(rel, "/multi-pack-index"):
		s.What, s.Why = "an object of a repository", "git does not check that its content is still the same"
	default:
		return paths.Special{}, false
	}
	return s, true
}

// specialForConfig returns the special entry for a change of a repository's configuration,
// which depends on the keys that differ. It is false if none does, or if the file is new and
// harmless. s is the entry for the file.
func specialForConfig(c tool.Change, s paths.Special) (paths.Special, bool) {
	if c.After == nil || c.From != "" {
		return s, true
	}
	after, err := configText(c.After)
	if err != nil {
		return s, true
	}
	if c.Before == nil {
		return s, gitconfig.Harmless(after) != nil
	}
	before, err := configText(c.Before)
	if err != nil {
		return s, true
	}
	keys, err := gitconfig.Diff(before, after)
	switch {
	case err != nil:
		s.Why = fmt.Sprintf("%s; here: %s", s.Why, err)
		return s, true
	case len(keys) == 0:
		return s, false
	}
	s.Care = paths.Asked
	s.What = "the git configuration, with " + strings.Join(keys, ", ")
	s.Why = "it names the places that git pulls from and pushes to"
	return s, true
}

// configText returns the content of a configuration file. It fails if the file is not regular,
// has a hard link or is larger than [gitconfig.MaxBytes].
func configText(v *tool.Version) (string, error) {
	if v.HardLink != "" {
		return "", errors.New("it is not a simple file")
	}
	data, err := v.Content(gitconfig.MaxBytes)
	return string(data), err
}
