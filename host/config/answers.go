package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/BurntSushi/toml"
)

// Answer is an "always" that a person answered to a question.
type Answer struct {
	Rule   string    `toml:"rule"`   // TOOL or TOOL(ARGUMENT=VALUE), maybe " with SECRET,SECRET"
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
	data, err := readBounded(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseAnswers(path, data)
}

// readBounded reads a regular file, and no more of it than tells that it is too
// long. Opening anything else could wait for ever.
func readBounded(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
}

func parseAnswers(path string, data []byte) ([]Answer, error) {
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

// adding is held from reading the old answers to replacing them.
var adding sync.Mutex

// AddAnswer adds an answer to the file, which it creates if need be, mode 0600.
// The file is replaced as a whole, so a crash leaves the old one or the new one.
// What could not be read back is not written. Answers that two goroutines add
// at once are both kept; of two processes, the last one's.
func AddAnswer(path string, a Answer) error {
	adding.Lock()
	defer adding.Unlock()
	answers, err := LoadAnswers(path)
	if err != nil {
		return err
	}
	buf := bytes.NewBufferString(answersHead)
	if err := toml.NewEncoder(buf).Encode(answersFile{append(answers, a)}); err != nil {
		return err
	}
	if _, err := parseAnswers(path, buf.Bytes()); err != nil {
		return fmt.Errorf("remember %q: %w", a.Rule, err)
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
