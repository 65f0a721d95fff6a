package tool

import "github.com/stockade-dev/stockade/sdk/go/internal/abi"

// Image is an image that goes with a result: the model sees it as one. The host
// passes on PNG, JPEG, GIF and WebP that are what Mime says, of at most 3.75 MiB and
// 8000 pixels a side, see package picture, and of one result at most eight and
// 7.5 MiB. Of any other it tells the model that it was left out, and why.
type Image struct {
	Mime string // such as "image/png"
	Data []byte
}

// Pictured is implemented by results with images. The result itself should say in
// words what they show: a person reads that, and a model that takes no images.
type Pictured interface{ Images() []Image }

const (
	contentSize  = 36 // of a content
	contentImage = 2  // the case; behind it, at 4, lie the mime and at 12 the data
)

// lowerImages lays out a list of contents.
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
