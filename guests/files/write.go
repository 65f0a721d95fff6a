package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/charset"
	"github.com/stockade-dev/stockade/sdk/go/digest"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

type writeArgs struct {
	Path           string           `json:"path" desc:"The file."`
	Content        string           `json:"content" desc:"The file's whole new content."`
	Encoding       charset.Encoding `json:"encoding,omitzero" desc:"To write in, if not UTF-8, such as gbk."`
	ExpectedSHA256 string           `json:"expected_sha256,omitempty" desc:"Write only if the file's present content has this SHA-256, as file_read returned it."`
}

type writeResult struct {
	Output string `json:"output"`
	Bytes  int    `json:"bytes"`
	Action string `json:"action"` // "Created" or "Overwrote"
	SHA256 string `json:"sha256"` // SHA-256 of the new content
}

func fileWrite(_ context.Context, in writeArgs) (writeResult, error) {
	if in.Path == "" {
		return writeResult{}, tool.InvalidInput("path is empty")
	}
	l, err := locate(in.Path)
	if err != nil {
		return writeResult{}, err
	}
	if err := checkHashText(in.ExpectedSHA256); err != nil {
		return writeResult{}, err
	}
	lost := ""
	content, err := encode(l, []byte(in.Content), in.Encoding)
	if err != nil {
		return writeResult{}, err
	}
	out := writeResult{Bytes: len(content), SHA256: hashOf(content), Action: "Overwrote"}
	if strings.Contains(in.Content, "\x00") {
		return writeResult{}, nulError("content", in.Content)
	}
	info, err := os.Stat(l.abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, linked := os.Lstat(l.abs); linked == nil {
			return writeResult{}, l.toolError("write", err) // a link to nothing
		}
		if in.ExpectedSHA256 != "" {
			return writeResult{}, tool.NotFound("write %s: expected_sha256 is set but the file does not exist; leave it out to create the file", l.display())
		}
		if err := l.checkCreate(in.Path); err != nil {
			return writeResult{}, err
		}
		out.Action = "Created"
		err = create(l, content)
	case err != nil:
		return writeResult{}, l.toolError("write", err)
	case !isFile(info):
		return writeResult{}, l.notAFile("write", info)
	default:
		if err := checkHash(l, info.Size(), in.ExpectedSHA256); err != nil {
			return writeResult{}, err
		}
		lost = lostFormNote(l, content, in.Encoding)
		err = overwrite(l, content)
	}
	if err != nil {
		return writeResult{}, l.toolError("write", err)
	}
	out.Output = fmt.Sprintf("Wrote %d bytes to %s%s", len(content), l.display(), lost)
	return out, nil
}

// encode returns a text as the bytes of a file. A character that enc lacks is an error.
func encode(l location, text []byte, enc charset.Encoding) ([]byte, error) {
	raw, lacks, at := enc.Encode(text)
	if at >= 0 {
		return nil, tool.Coded("NOT_ENCODABLE", tool.InvalidInput("%s is %s, which has no %q (%U) as line %d would need; write it another way, or convert the file to UTF-8 first",
			l.display(), enc, lacks, lacks, 1+bytes.Count(text[:at], []byte("\n"))))
	}
	return raw, nil
}

// nulError returns the error of a text with a NUL byte: with it, tools would take the
// file for binary.
func nulError(argument, text string) error {
	before, _, _ := strings.Cut(text, "\x00")
	return tool.InvalidInput("%s holds a NUL byte in its line %d, which no text has: leave it out, or make a binary file with bash", argument, 1+strings.Count(before, "\n"))
}

// lostFormNote returns the end of a message if the new content loses an invisible property of
// the file: an encoding other than UTF-8, a byte order mark, or CRLF. Otherwise it is empty.
func lostFormNote(l location, content []byte, hint charset.Encoding) string {
	f, err := os.Open(l.abs)
	if err != nil {
		return ""
	}
	defer f.Close()
	head, err := readHead(f, binaryProbe)
	if err != nil {
		return ""
	}
	switch enc := charset.Of(head).Told(hint, head); {
	case enc.Form == charset.Binary, enc.Form == hint.Form:
	case enc.Form != charset.UTF8:
		return fmt.Sprintf("; it was %s, and is %s now", enc, cmp.Or(hint.String(), "UTF-8"))
	case enc.Mark != "" && !bytes.HasPrefix(content, []byte(enc.Mark)):
		return "; the byte order mark that it began with is gone"
	case ending(head) == "\r\n" && bytes.Contains(content, []byte("\n")) && ending(content) == "\n":
		return "; its lines ended with CRLF, and end with LF now"
	}
	return ""
}

// create writes a new file and makes its directories. It writes under the final name, so that
// an error names that file. If the call ends in the middle, the host drops its changes.
func create(l location, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(l.abs), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(l.abs, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(l.abs)
	}
	return err
}

// replace replaces a file, completely or not at all, even if the call ends in the middle
// or the disk is full. mode only has an effect outside of WebAssembly: WASI preview 1 has
// no modes, and the host keeps the mode of the replaced file.
func replace(l location, content []byte, mode fs.FileMode) error {
	temp := filepath.Join(filepath.Dir(l.abs), ".stockade-"+rand.Text()+".tmp")
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Close())
	if err == nil && mode != 0o666 {
		err = os.Chmod(temp, mode)
	}
	if err == nil {
		err = os.Rename(temp, l.abs)
	}
	if err != nil {
		os.Remove(temp)
	}
	return err
}

// overwrite replaces the content of an existing file. If the name is a link, it writes into
// the target, because the link has to stay and only the host knows its target.
func overwrite(l location, content []byte) error {
	f, err := os.OpenFile(l.abs, os.O_WRONLY, 0)
	if err != nil {
		return err // a file that we may not write, we may not replace either
	}
	if info, err := os.Lstat(l.abs); err == nil && info.Mode().IsRegular() {
		return errors.Join(f.Close(), replace(l, content, info.Mode().Perm()))
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Truncate(int64(len(content)))
	}
	return errors.Join(err, f.Close())
}

func hashOf(content []byte) string {
	sum := digest.SHA256(content)
	return hex.EncodeToString(sum[:])
}

const sha256Bytes = 32

func checkHashText(want string) error {
	if _, err := hex.DecodeString(want); err != nil || want != "" && len(want) != 2*sha256Bytes {
		return tool.InvalidInput("expected_sha256 is not a SHA-256 in hexadecimal; take it from the result of file_read")
	}
	return nil
}

// readHashed reads the content of a file for its hash: at most maxHashed bytes, plus one if
// there is more. size is the expected size of the file.
func readHashed(f io.Reader, size int64) ([]byte, error) {
	// io.ReadAll would hold several copies of a large file.
	var content bytes.Buffer
	content.Grow(int(min(size, maxHashed)) + bytes.MinRead)
	_, err := content.ReadFrom(io.LimitReader(f, maxHashed+1))
	return content.Bytes(), err
}

// checkHash returns an error if want is not empty and the file has another hash, or more than
// maxHashed bytes. It does not show the hash, so that the caller has to read the file again.
func checkHash(l location, size int64, want string) error {
	if want == "" {
		return nil
	}
	f, err := os.Open(l.abs)
	if err != nil {
		return l.toolError("read", err)
	}
	defer f.Close()
	content, err := readHashed(f, size)
	if err != nil {
		return l.toolError("read", err)
	}
	if len(content) > maxHashed {
		return tool.Coded("TOO_LARGE", tool.InvalidInput("%s has more than %s, and no tool compares the hash of so much; leave expected_sha256 out", l.display(), humanSize(maxHashed)))
	}
	return compareHash(l, hashOf(content), want)
}

func compareHash(l location, have, want string) error {
	if want != "" && !strings.EqualFold(have, want) {
		return tool.Coded("CONTENT_CHANGED", tool.InvalidInput("%s has changed since it was read; read it again with file_read", l.display()))
	}
	return nil
}
