package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/stockade-dev/stockade/sdk/go/picture"
)

// Image is an image that a tool returns beside its output, for the model. Secrets that its
// pixels show are not found.
type Image struct {
	Mime          string // image/png, image/jpeg, image/gif or image/webp
	Data          []byte // at most picture.MaxBytes
	Width, Height int    // pixels, at most picture.MaxSide
}

// NewImage returns an image after a check that data has the type mime and a size that models
// accept. The error begins with "it", which stands for data. The caller must not change data any
// more.
func NewImage(mime string, data []byte) (Image, error) {
	info, err := picture.Look(data)
	switch {
	case err != nil:
		return Image{}, fmt.Errorf("it %w", err)
	case info.Mime != mime:
		return Image{}, fmt.Errorf("it says that it is %.40q and is %s", mime, info.Mime)
	}
	return Image{info.Mime, data, info.Width, info.Height}, nil
}

// String describes the image in short, such as "image/png, 640x480".
func (i Image) String() string {
	return picture.Info{Mime: i.Mime, Width: i.Width, Height: i.Height}.String()
}

// ImageInfo describes an image in the envelope.
type ImageInfo struct {
	Mime   string `json:"mime"`
	Bytes  int    `json:"bytes"` // size of the data
	Width  int    `json:"width"`
	Height int    `json:"height"`
	SHA256 string `json:"sha256"` // of the data, in hex
}

// Info returns the description of the image, without its data.
func (i Image) Info() ImageInfo {
	sum := sha256.Sum256(i.Data)
	return ImageInfo{i.Mime, len(i.Data), i.Width, i.Height, hex.EncodeToString(sum[:])}
}
