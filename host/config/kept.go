package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/BurntSushi/toml"
)

// decodeAll decodes a file that this program keeps. Anything unknown in it is an
// error: what it was meant to say must not be guessed.
func decodeAll(path string, data []byte, into any) error {
	src, err := Source(path, data)
	if err != nil {
		return err
	}
	meta, err := toml.Decode(src, into)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return fmt.Errorf("%s: unknown key %q", path, unknown[0])
	}
	return nil
}

// replaceFile writes a file that only its owner can read, and makes its
// directory if need be. A crash leaves the old file or the new one.
func replaceFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(tmp.Name(), path)
}
