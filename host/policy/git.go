package policy

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/gitconfig"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
)

// specialForCommand is [paths.SpecialForChange] or [paths.SpecialForMove], which find is, for what a
// command has changed, which may have been git: the state of a repository is one of
// many files, and what git does in it is decided about by what it says.
func specialForCommand(c tool.Change, name string, find func(string) (paths.Special, bool)) (paths.Special, bool) {
	s, special := find(name)
	rel, inside := inGit(name)
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
		// A new one is what is in it.
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

// newInRepository reports whether something is what git makes of a new repository, and
// runs nothing.
func newInRepository(c tool.Change, name string) bool {
	switch {
	case c.After.Mode.IsDir(): // is what is in it
		return true
	case strings.HasSuffix(name, "/config"):
		text, err := configText(c.After)
		return err == nil && gitconfig.Harmless(text) == nil
	}
	return strings.HasSuffix(name, ".sample")
}

// replaceRefPrefix is the prefix of the references by which git replaces objects.
const replaceRefPrefix = "refs/replace/"

// specialInGit finds changes in .git that no everyday command makes, and that mean more than
// what is told of a repository.
func specialInGit(c tool.Change, rel string) (s paths.Special, special bool) {
	s = paths.Special{Pattern: ".git/" + rel, Care: paths.Asked}
	object := strings.HasPrefix(rel, "objects/") && !strings.HasPrefix(rel, "objects/info/") && c.Kind == tool.Modified
	switch {
	case strings.HasPrefix(rel, "remotes/"), strings.HasPrefix(rel, "branches/"):
		s.What, s.Why = "what a remote is called", "it says what git pulls from and pushes to"
	case rel == "objects/info/alternates", rel == "objects/info/http-alternates":
		s.What, s.Why = "another place of a repository's objects", "what is there counts as its own"
	case strings.HasPrefix(rel, replaceRefPrefix), rel == "info/grafts", rel == "shallow":
		s.What, s.Why = "what stands for an object of a repository", "git shows that instead of the object"
	case object && !strings.HasSuffix(rel, "/multi-pack-index"):
		s.What, s.Why = "an object of a repository", "git believes that it holds what it held"
	default:
		return paths.Special{}, false
	}
	return s, true
}

// inGit returns the name that a path has in the first directory .git of it.
func inGit(name string) (rel string, inside bool) {
	names := strings.Split(name, "/")
	i := slices.Index(names, ".git")
	if i < 0 {
		return "", false
	}
	return strings.Join(names[i+1:], "/"), true
}

// specialForConfig decides about the configuration of a repository by the keys that
// differ.
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
		s.Why = fmt.Sprintf("%s, and of this %s", s.Why, err)
		return s, true
	case len(keys) == 0:
		return s, false
	}
	s.Care = paths.Asked
	s.What = "the git configuration, with " + strings.Join(keys, ", ")
	s.Why = "it says what git pulls from and pushes to"
	return s, true
}

// configText is the content of a configuration that can be judged.
func configText(v *tool.Version) (string, error) {
	if !v.Mode.IsRegular() || v.HardLink != "" || v.Size > gitconfig.MaxBytes {
		return "", fmt.Errorf("it is no simple file")
	}
	r, err := v.Open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, gitconfig.MaxBytes+1))
	return string(data), err
}
