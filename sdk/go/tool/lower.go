package tool

import "github.com/stockade-dev/stockade/sdk/go/internal/abi"

// describe lowers the manifest as describe's result, a string.
func (r *registry) describe() (ptr uint32) {
	f := new(abi.Frame)
	ptr, area := f.Area(8)
	area.SetPair(0)(f.Bytes(r.manifest()))
	return f.Return(ptr)
}

// lower lays out a result<output, error>, 24 bytes: the case at 0, then at 4
// either output, whose list of contents has the images and whose option of
// structured text has its case at 12 and its text at 16, or the error, whose
// text is at 8.
func lower(result []byte, images []Image, fault *Error) (ptr uint32) {
	f := new(abi.Frame)
	ptr, area := f.Area(24)
	if fault == nil {
		area.SetPair(4)(lowerImages(f, images))
		area.SetCase(12, 1)
		area.SetPair(16)(f.Bytes(result))
		return f.Return(ptr)
	}
	area.SetCase(0, 1)
	area.SetCase(4, uint8(fault.Code))
	if fault.Code != CodeCancelled {
		area.SetPair(8)(f.Text(fault.text()))
	}
	return f.Return(ptr)
}
