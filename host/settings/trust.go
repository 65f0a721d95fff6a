package settings

import (
	"context"
	"encoding/hex"
	"path/filepath"
	"slices"
	"time"

	"github.com/stockade-dev/stockade/host/config"
)

// Trust is a person's yes to a project file: to one content at one place.
type Trust struct {
	Path   string                `toml:"path" json:"path"`     // absolute
	SHA256 string                `toml:"sha256" json:"sha256"` // of the content, in hex
	Added  time.Time             `toml:"added" json:"added"`
	Asks   []config.TrustRequest `toml:"asks" json:"asks"` // what was shown, so that a change of it can be
}

// Covers reports whether the yes was to this content. A program that finds more
// in it than was shown (a later version may) has to ask again, so what it asks
// for is compared, too.
func (t Trust) Covers(f *config.File) bool {
	return t.SHA256 != "" && t.SHA256 == f.SHA256 && slices.Equal(t.Asks, f.TrustRequests())
}

// Changes says in words what a file asks for that is not what was trusted, a line
// for each. It is empty if that is the same, and the rest of the file changed.
func (t Trust) Changes(now []config.TrustRequest) []string {
	var out []string
	value := func(asks []config.TrustRequest, key string) (string, bool) {
		i := slices.IndexFunc(asks, func(a config.TrustRequest) bool { return a.Key == key })
		if i < 0 {
			return "", false
		}
		return asks[i].Value, true
	}
	keys := config.Keys()
	for _, ask := range slices.Concat(t.Asks, now) { // those below names
		if !slices.Contains(keys, ask.Key) {
			keys = append(keys, ask.Key)
		}
	}
	for _, key := range keys {
		was, before := value(t.Asks, key)
		is, after := value(now, key)
		switch {
		case before && after && was != is:
			out = append(out, key+" was: "+was, key+" is: "+is)
		case before && !after:
			out = append(out, key+" was: "+was, key+" is no longer asked for")
		case after && !before:
			out = append(out, key+" was not asked for", key+" is: "+is)
		}
	}
	return out
}

func (d Dirs) trusts() entryFile[Trust] {
	return entryFile[Trust]{
		path: d.trustFile(), table: "trust",
		check: func(t Trust) bool {
			sum, err := hex.DecodeString(t.SHA256)
			return err == nil && len(sum) == 32 && filepath.IsAbs(t.Path)
		},
		needs: "an absolute path and the sha256 of a content",
		head: `# The project files that were trusted, each with one content at one place.
# "stockade config trusted" lists them; "stockade config revoke FILE" removes one.

`,
	}
}

// Trusts reads what was trusted, if nobody else could have written it.
func (d Dirs) Trusts() ([]Trust, error) { return d.trusts().load() }

// FindTrust is the trust in the file at a place, or the zero Trust, which covers
// nothing.
func (d Dirs) FindTrust(place string) (Trust, error) {
	trusts, err := d.Trusts()
	if i := slices.IndexFunc(trusts, func(t Trust) bool { return t.Path == place }); i >= 0 {
		return trusts[i], err
	}
	return Trust{}, err
}

// Trust keeps a yes to a file as it is. What was trusted at the same place
// before is not any more.
func (d Dirs) Trust(f *config.File) error {
	return d.addTrust(Trust{Path: f.Path, SHA256: f.SHA256, Added: time.Now().UTC().Truncate(time.Second), Asks: f.TrustRequests()})
}

func (d Dirs) addTrust(t Trust) error {
	return d.trusts().change(func(trusts []Trust) []Trust {
		return append(slices.DeleteFunc(trusts, func(old Trust) bool { return old.Path == t.Path }), t)
	})
}

// Distrust takes trust in the file at a place back, and reports whether there was
// any.
func (d Dirs) Distrust(place string) (found bool, err error) {
	removed, err := d.trusts().remove(func(t Trust) bool { return t.Path == place })
	return removed != nil, err
}

// FilePlace is the name under which a file is trusted: links in the directory
// are followed, as those to a workspace are, and that of the file is not.
func FilePlace(name string) (string, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.Join(Resolve(filepath.Dir(abs)), filepath.Base(abs)), nil
}

// ensureTrust reports whether a person has trusted the workspace's file as it is, or
// does so now.
func (s *Settings) ensureTrust(ctx context.Context, o Options, project *config.File) (bool, error) {
	was, err := s.Dirs.FindTrust(project.Path)
	if err != nil || was.Covers(project) {
		return err == nil, err
	}
	if o.Ask == nil {
		return false, nil
	}
	if yes, err := o.Ask(ctx, project, was); err != nil || !yes {
		return false, err
	}
	return true, s.Dirs.Trust(project)
}
