package settings

import (
	"errors"
	"io/fs"

	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/internal/private"
	"github.com/stockade-dev/stockade/host/registry/trust"
)

// TrustFiles returns the files that list trusted publishers of modules: the administrator's
// trust.toml next to the policy, which must be as safe, and then the user's. A missing file is
// left out.
func (s *Settings) TrustFiles(administrator policyfile.Place) ([]*trust.File, error) {
	var files []*trust.File
	for _, p := range []struct {
		place policyfile.Place
		hint  string
	}{
		{administrator.Sibling("trust.toml"), "nothing is added until an administrator has mended it"},
		{policyfile.User(s.Dirs.TrustTOML()), "mend the file, or move it away"},
	} {
		data, err := p.place.Bytes()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var f *trust.File
		if err == nil {
			f, err = trust.Parse(p.place.Path, data)
		}
		if err != nil {
			return nil, mistake(p.hint, "%v", err)
		}
		files = append(files, f)
	}
	return files, nil
}

// ChangePublishers replaces the user's trust.toml by the result of f, which gets the old
// content; nil: there is no file.
func (d Dirs) ChangePublishers(f func([]byte) ([]byte, error)) error {
	return withLock(d.TrustTOML(), func() error {
		data, err := orNone(policyfile.User(d.TrustTOML()).Bytes())
		if err == nil {
			data, err = f(data)
		}
		if err != nil {
			return err
		}
		return private.Write(d.TrustTOML(), data)
	})
}
