package editor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
)

// Limits of the history, in the file and in memory.
const (
	maxEntries      = 1000     // number of prompts; the oldest are dropped
	maxEntryBytes   = 64 << 10 // bytes of a line of the file; a longer prompt is only kept in memory
	maxHistoryBytes = 4 << 20  // bytes of the file that are read; a larger file is shortened
)

// history holds the earlier prompts, the newest last. The file has one JSON string per line.
// Several chats may append to it at once. Lines that cannot be read are skipped.
type history struct {
	path    string // the file has been read
	loaded  bool
	entries []string
}

// all returns the prompts, the newest last. The first call reads the file.
func (h *history) all() []string {
	if !h.loaded {
		h.loaded, h.entries = true, h.read()
	}
	return h.entries
}

func (h *history) read() []string {
	if h.path == "" {
		return nil
	}
	f, err := open(h.path, os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := tail(f)
	if err != nil {
		return nil
	}
	var entries []string
	for line := range bytes.Lines(data) {
		var entry string
		if len(line) <= maxEntryBytes && json.Unmarshal(line, &entry) == nil && entry != "" {
			entries = append(entries, entry)
		}
	}
	return entries[max(len(entries)-maxEntries, 0):]
}

// tail reads the last maxHistoryBytes of a file, from the beginning of a line.
func tail(f *os.File) ([]byte, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, st.Size()-maxHistoryBytes)
	data, err := io.ReadAll(io.NewSectionReader(f, from, maxHistoryBytes))
	if from > 0 {
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	return data, err
}

// open opens a regular file. Anything else is an error: opening a pipe would block.
func open(path string, flag int) (*os.File, error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	return os.OpenFile(path, flag, 0o600)
}

// add adds a prompt, unless it equals the last one.
func (h *history) add(prompt string) error {
	entries := h.all()
	if n := len(entries); n > 0 && entries[n-1] == prompt {
		return nil
	}
	h.entries = append(entries[max(0, len(entries)-maxEntries+1):], prompt)
	if h.path == "" {
		return nil
	}
	line, err := json.Marshal(prompt)
	if err != nil || len(line) >= maxEntryBytes {
		return err
	}
	if err := h.append(append(line, '\n')); err != nil {
		return fmt.Errorf("keep the history: %w", err)
	}
	return nil
}

// lockTimeout limits the wait for other chats, which takes some milliseconds. After it, the
// prompt is not written to the file.
const lockTimeout = 10 * time.Second

// append appends one line to the file, and shortens a file that has become too large. A lock keeps
// other chats from writing to a file that is being replaced.
func (h *history) append(line []byte) error {
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	lock := flock.New(h.path+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 5*time.Millisecond); err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	f, err := open(h.path, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if last := make([]byte, 1); st.Size() > 0 {
		// A crash or a full disk may have left half a line.
		if _, err := f.ReadAt(last, st.Size()-1); err == nil && last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	if _, err := f.Write(line); err != nil || st.Size() <= maxHistoryBytes {
		return err
	}
	_ = f.Close() // some systems replace no open file
	return h.shorten()
}

// shorten keeps only the newest prompts in the file, in at most half of maxHistoryBytes. The
// caller holds the lock.
func (h *history) shorten() error {
	var lines [][]byte
	size := 0
	for _, entry := range slices.Backward(h.read()) {
		line, err := json.Marshal(entry)
		if size += len(line) + 1; err != nil || size > maxHistoryBytes/2 {
			break
		}
		lines = append(lines, append(line, '\n'))
	}
	slices.Reverse(lines)
	f, err := os.CreateTemp(filepath.Dir(h.path), filepath.Base(h.path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(bytes.Join(lines, nil))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), h.path)
}
