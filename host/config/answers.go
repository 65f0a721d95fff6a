package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/stockade-dev/stockade/host/config/keys"
)

// Answer is an "always" that a person answered to a question.
type Answer struct {
	Rule    string    `toml:"rule"`              // TOOL or TOOL(CONDITION), maybe " with SECRET,SECRET"
	Project string    `toml:"project,omitempty"` // the workspace in which it holds; empty: in any
	Added   time.Time `toml:"added"`
	// What the rule was made for; when any of it changes it answers nothing.
	Module       string `toml:"module"` // "builtin" or "sha256:..."
	ABI          string `toml:"abi,omitempty"`
	Description  string `toml:"description_sha256,omitempty"`
	Schema       string `toml:"schema_sha256,omitempty"`
	Capabilities string `toml:"capabilities_sha256,omitempty"`
	Said         Said   `toml:"said"`
}

// Said is what a tool said of itself when the answer was given, so that a change
// can be shown.
type Said struct {
	Description string `toml:"description"`
	Schema      string `toml:"schema"`
	AsksFor     string `toml:"asks_for"`
}

// ID is a short name for the answer, by which it can be removed. It depends on
// the rule, the module and the project.
func (a Answer) ID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", a.Rule, a.Module, a.Project))
	return hex.EncodeToString(sum[:4])
}

type answersFile struct {
	Allow []Answer `toml:"allow"`
}

const answersHead = `# What was answered with "always" or "project" at a prompt. "stockade policy show"
# lists it; "stockade policy revoke" removes an entry, to be asked again.

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
	return ParseAnswers(path, data)
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
	return io.ReadAll(io.LimitReader(f, keys.MaxFileBytes+1))
}

// ParseAnswers is LoadAnswers of a file that has been read.
func ParseAnswers(path string, data []byte) ([]Answer, error) {
	var f answersFile
	if err := decodeAll(path, data, &f); err != nil {
		return nil, err
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
// What could not be read back is not written. Answers that are added at once, in
// this process and in others, are all kept.
func AddAnswer(path string, a Answer) error {
	unlock, err := lockKept(path)
	if err != nil {
		return err
	}
	defer unlock()
	answers, err := LoadAnswers(path)
	if err != nil {
		return err
	}
	answers = slices.DeleteFunc(answers, func(old Answer) bool { // it is replaced
		return old.Rule == a.Rule && old.Project == a.Project
	})
	return writeAnswers(path, append(answers, a))
}

// RemoveAnswers removes the answers that match and returns them.
func RemoveAnswers(path string, match func(Answer) bool) ([]Answer, error) {
	unlock, err := lockKept(path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	answers, err := LoadAnswers(path)
	if err != nil {
		return nil, err
	}
	var keep, removed []Answer
	for _, a := range answers {
		if match(a) {
			removed = append(removed, a)
		} else {
			keep = append(keep, a)
		}
	}
	if removed == nil {
		return nil, nil
	}
	return removed, writeAnswers(path, keep)
}

func writeAnswers(path string, answers []Answer) error {
	buf := bytes.NewBufferString(answersHead)
	if err := toml.NewEncoder(buf).Encode(answersFile{answers}); err != nil {
		return err
	}
	if _, err := ParseAnswers(path, buf.Bytes()); err != nil {
		return fmt.Errorf("write answers: %w", err)
	}
	return replaceFile(path, buf.Bytes())
}
