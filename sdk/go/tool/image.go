package tool

import "github.com/stockade-dev/stockade/sdk/go/internal/abi"

// Image is an image in a result, which the model sees. The host passes on at most eight images
// of a result, with 7.5 MiB together. Each must be a PNG, JPEG, GIF or WebP as Mime says, of
// at most 3.75 MiB and 8000 pixels a side, see package picture. For any other image the model
// gets the reason why it was left out.
type Image struct {
	Mime string // such as "image/png"
	Data []byte
}

// Pictured is implemented by results with images. The result itself should describe them in
// words, for people and for models that accept no images.
type Pictured interface{ Images() []Image }

const (
	contentSize  = 36 // bytes of the variant content
	contentImage = 2  // case of an image, with the mime at 4 and the data at 12
)

// lowerImages lays out images as a list of contents.
func lowerImages(f *abi.Frame, images []Image) (ptr, n uint32) {
	if len(images) == 0 {
		return f.Bytes(nil)
	}
	ptr, list := f.Area(uint32(len(images)) * contentSize)
	for i, img := range images {
		c := list[i*contentSize:]
		c.SetCase(0, contentImage)
		c.SetPair(4)(f.Text(img.Mime))
		c.SetPair(12)(f.Bytes(img.Data))
	}
	return ptr, uint32(len(images))
}
