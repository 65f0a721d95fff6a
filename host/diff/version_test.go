package diff

import (
	"bytes"
	"io"

	"github.com/stockade-dev/stockade/host/tool"
)

func version(data []byte) *tool.Version {
	return &tool.Version{Size: int64(len(data)), Mode: 0o644, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}
