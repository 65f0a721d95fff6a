package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/BurntSushi/toml"
)

// Answer is an "always" that a person answered to a question.
type Answer struct {
	Rule   string    `toml:"rule"`   // TOOL or TOOL(ARGUMENT=VALUE)
	Module string    `toml:"module"` // "builtin" or "sha256:..."; the rule holds for this module only
	Added  time.Time `toml:"added"`
}

type answersFile struct {
	Allow []Answer `toml:"allow"`
}

const answersHead = `# What was answered with "always" at a prompt. Remove an entry to be asked again.

`

// LoadAnswers reads the file of remembered answers; one that is not there holds
// none. A file with anything unknown in it is an error: what it was meant to
// say must not be guessed.
func LoadAnswers(path string) ([]Answer, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(data) > MaxFileBytes {
		return nil, fmt.Errorf("%s: more than %d bytes", path, MaxFileBytes)
	}
	var f answersFile
	meta, err := toml.Decode(string(data), &f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("%s: unknown key %q", path, unknown[0])
	}
	for i, a := range f.Allow {
		if a.Rule == "" || a.Module == "" {
			return nil, fmt.Errorf("%s: entry %d of allow needs rule and module", path, i+1)
		}
	}
	return f.Allow, nil
}

// AddAnswer adds an answer to the file, which it creates if need be, mode 0600.
// The file is replaced as a whole, so a crash leaves the old one or the new one.
func AddAnswer(path string, a Answer) error {
	answers, err := LoadAnswers(path)
	if err != nil {
		return err
	}
	buf := bytes.NewBufferString(answersHead)
	if err := toml.NewEncoder(buf).Encode(answersFile{append(answers, a)}); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, ".allow-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(buf.Bytes())
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(tmp.Name(), path)
}
