package author

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ReadScripts reads all files tests/*.txt in a folder, sorted by name. named returns the name
// of a file for messages.
func ReadScripts(dir string, named func(file string) string) (scripts []*Script, err error) {
	files, err := fs.Glob(os.DirFS(dir), "tests/*.txt")
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	for _, file := range files {
		file = filepath.Join(dir, filepath.FromSlash(file))
		st, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		if !st.Mode().IsRegular() || st.Size() > maxScriptBytes {
			return nil, fmt.Errorf("%s is no file of at most %d bytes", file, maxScriptBytes)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		s, err := ParseScript(named(file), data)
		if err != nil {
			return nil, err
		}
		s.file = file
		scripts = append(scripts, s)
	}
	return scripts, nil
}

// Save writes the results of the last run into the file, in the place of expectations that
// were not met. It returns the new script. changed is false if the file stays the same.
func (s *Script) Save() (after *Script, changed bool, err error) {
	before, err := os.ReadFile(s.file)
	if err != nil {
		return nil, false, err
	}
	data := s.update()
	if changed = !bytes.Equal(before, data); changed {
		if err := os.WriteFile(s.file, data, 0o644); err != nil {
			return nil, false, err
		}
	}
	if after, err = ParseScript(s.Name, data); err != nil {
		return nil, changed, err
	}
	after.file = s.file
	return after, changed, nil
}
