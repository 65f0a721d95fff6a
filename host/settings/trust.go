package settings

import (
	"context"
	"encoding/hex"
	"path/filepath"
	"slices"
	"time"

	"github.com/stockade-dev/stockade/host/config"
)

// Trust is a person's yes to a project file: to one content at one path.
type Trust struct {
	Path   string                `toml:"path" json:"path"`     // absolute
	SHA256 string                `toml:"sha256" json:"sha256"` // SHA-256 of the content, in hex
	Added  time.Time             `toml:"added" json:"added"`
	Asks   []config.TrustRequest `toml:"asks" json:"asks"` // requests that the person saw
}

// Covers reports whether the yes was to this content. It also compares the requests: a later
// version of the program may find more of them in the same content, and has to ask again.
func (t Trust) Covers(f *config.File) bool {
	return t.SHA256 != "" && t.SHA256 == f.SHA256 && slices.Equal(t.Asks, f.TrustRequests())
}

// Changes returns the differences between the trusted requests and the requests now, a line
// for each old and new value. It is empty if only the rest of the file has changed.
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
	for _, ask := range slices.Concat(t.Asks, now) { // further keys, below names that the user chose
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

// Trusts returns the trusted project files. It fails if anybody but the user could have
// written the list.
func (d Dirs) Trusts() ([]Trust, error) { return d.trusts().load() }

// FindTrust returns the trust in the file at a place, see [FilePlace]. Without any, it is the
// zero Trust, which covers nothing.
func (d Dirs) FindTrust(place string) (Trust, error) {
	trusts, err := d.Trusts()
	if i := slices.IndexFunc(trusts, func(t Trust) bool { return t.Path == place }); i >= 0 {
		return trusts[i], err
	}
	return Trust{}, err
}

// Trust stores a yes to the file with its present content. It replaces the trust in an earlier
// content.
func (d Dirs) Trust(f *config.File) error {
	return d.addTrust(Trust{Path: f.Path, SHA256: f.SHA256, Added: time.Now().UTC().Truncate(time.Second), Asks: f.TrustRequests()})
}

func (d Dirs) addTrust(t Trust) error {
	return d.trusts().change(func(trusts []Trust) []Trust {
		return append(slices.DeleteFunc(trusts, func(old Trust) bool { return old.Path == t.Path }), t)
	})
}

// Distrust removes the trust in the file at a place. found reports whether there was any.
func (d Dirs) Distrust(place string) (found bool, err error) {
	removed, err := d.trusts().remove(func(t Trust) bool { return t.Path == place })
	return len(removed) > 0, err
}

// FilePlace returns the path under which a file is trusted. Symbolic links in its directory
// are resolved, as in the path of a workspace; the file itself may be a link.
func FilePlace(name string) (string, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.Join(Resolve(filepath.Dir(abs)), filepath.Base(abs)), nil
}

// ensureTrust reports whether a person trusts the workspace's file with its present content.
// It asks if necessary.
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
