package tool

import "github.com/stockade-dev/stockade/sdk/go/internal/abi"

// describe returns the manifest as the result of the export describe, a string.
func (r *registry) describe() (ptr uint32) {
	f := new(abi.Frame)
	ptr, area := f.Area(8)
	area.SetPair(0)(f.Bytes(r.manifest()))
	return f.Return(ptr)
}

// lower lays out a result<output, error> in 24 bytes. The case is at 0. For an output, the
// list of contents, with the images, is at 4; the case of the optional structured text is at
// 12, and the text at 16. For an error, its case is at 4 and its text at 8.
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
