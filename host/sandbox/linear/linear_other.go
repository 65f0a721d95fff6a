//go:build !linux

package linear

import "os"

func newImage(content []byte, size int) (*Image, error) {
	b := make([]byte, size)
	copy(b, content)
	return &Image{bytes: b, file: -1}, nil
}

func load(f *os.File, size int) (*Image, error) {
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, err
	}
	return &Image{bytes: b, file: -1}, nil
}

// Close frees the image.
func (i *Image) Close() {
	if i != nil {
		i.bytes = nil
	}
}

func (i *Image) write(f *os.File) error {
	_, err := f.Write(i.bytes)
	return err
}

func (i *Image) mapTo(region []byte) error {
	copy(region, i.bytes)
	return nil
}

func bestMethod() Method { return MethodCopy }

func (m *Memory) reset() (int, error) { panic("linear: there is one method") }

func (m *Memory) clearBeyondImage(size int) error {
	clear(m.region[len(m.image.bytes):size])
	return nil
}

func (m *Memory) trim() error { return nil } // the image is a copy: there is no file to read it from again
