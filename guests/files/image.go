package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/stockade-dev/stockade/sdk/go/lines"
	"github.com/stockade-dev/stockade/sdk/go/picture"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// Texts about images in the documentation of file_read.
var (
	imageErrors = []string{
		"IMAGE_TOO_LARGE: the image has more bytes or pixels than models take; make a smaller copy and read that",
		"IMAGE_BROKEN: the file begins as an image and is cut short or damaged",
	}
	imageLimits = []string{fmt.Sprintf("images are PNG, JPEG, GIF or WebP by their content, of at most %s and %d pixels a side",
		humanSize(picture.MaxBytes), picture.MaxSide)}
)

// Images returns the image if the file is an image.
func (r readResult) Images() []tool.Image { return r.images }

// readImage reads a file as an image. ok is false if its content is none. Text is never an
// image, even if it begins like one.
func readImage(f io.ReaderAt, size int64, l location) (out readResult, ok bool, err error) {
	head, err := readHead(f, picture.HeadBytes)
	if err != nil || picture.Mime(head) == "" {
		return readResult{}, false, l.ensureToolError("read", err)
	}
	data, err := readHead(f, int(min(size, picture.MaxBytes)))
	if err != nil || !lines.IsBinary(data) {
		return readResult{}, false, l.ensureToolError("read", err)
	}
	var info picture.Info
	if err = picture.TooLarge(size); size <= picture.MaxBytes {
		info, err = picture.Look(data)
	}
	switch {
	case errors.Is(err, picture.ErrLarge):
		return readResult{}, false, tool.Coded("IMAGE_TOO_LARGE", tool.Parse("read %s: the image %w; make a smaller copy of it, and read that", l.display(), err))
	case err != nil:
		return readResult{}, false, tool.Coded("IMAGE_BROKEN", tool.Parse("read %s: %w, and models do not accept such an image", l.display(), err))
	}
	return readResult{
		Output: fmt.Sprintf("%s, %s", info, humanSize(int64(len(data)))),
		SHA256: hashOf(data),
		images: []tool.Image{{Mime: info.Mime, Data: data}},
	}, true, nil
}

// readHead reads the first n bytes of a file, or all of a shorter one.
func readHead(f io.ReaderAt, n int) ([]byte, error) {
	head := make([]byte, n)
	n, err := f.ReadAt(head, 0)
	if err == io.EOF {
		err = nil
	}
	return head[:n], err
}
