package abi

import (
	"bytes"

	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/sdk/go/picture"
)

// Limits on the values that a guest returns. The result for the model is cut to a lower limit
// later; these limits keep a guest from making the host copy its whole memory several times.
const (
	MaxResultBytes  = 32 << 20 // bytes of all texts and images in a result; more are a [Fault]
	maxContents     = 1024     // elements of a result; more are a Fault
	maxMessageBytes = 64 << 10 // bytes after which the message of an error is cut

	maxImages      = 8                    // images in a result; further images are left out
	maxImagesBytes = 2 * picture.MaxBytes // bytes of all images in a result; further images are left out
)

// Images counts the images of a result, so that no more of them are copied than the limits
// allow. The zero value is a result without images.
type Images struct{ number, bytes int }

// Add counts an image of n bytes. False: it would exceed a limit, and is not counted.
func (i *Images) Add(n int) bool {
	if i.number == maxImages || n > picture.MaxBytes || i.bytes+n > maxImagesBytes {
		return false
	}
	i.number, i.bytes = i.number+1, i.bytes+n
	return true
}

// ContentKind is the case of `variant content`.
type ContentKind uint8

// The cases of `variant content`.
const (
	ContentText ContentKind = iota
	ContentJSON
	ContentImage
	ContentResource
)

// Content is one element of an output.
type Content struct {
	Kind  ContentKind
	Text  string // text or JSON; URI of a resource
	Title string // title of a resource
	Mime  string // MIME type of an image or a resource
	Data  []byte // image from the guest, unchecked; nil: it is empty or over a limit, see [Images]
}

// Output is the successful result of a tool.
type Output struct {
	Content    []Content
	Structured string // JSON text from the guest, unchecked; "": there is none
}

// ErrorCase is the case of `variant error`.
type ErrorCase uint8

// The cases of `variant error`.
const (
	InvalidInput ErrorCase = iota
	UnknownTool
	NotFound
	Denied
	IO
	Parse
	Unavailable
	Cancelled
	Failed
)

// ToolError is a failure that the tool itself reports.
type ToolError struct {
	Case    ErrorCase
	Message string // "" for Cancelled
	Native  bool   // set for tools of native modules, whose messages may begin with a code
	// The fields below describe a failed command; ExitCode is nil otherwise. Stdout and
	// Stderr are without secrets.
	ExitCode       *int
	Stdout, Stderr string
}

// Layout of the lifted values, in bytes; a test compares it with wit/. Offsets count from the
// beginning of the value that the prefix of the name stands for.
const (
	ResultSize       = 24 // result<output, error>
	ResultPayload    = 4
	OutputContent    = 0
	OutputStructured = 8
	ErrorPayload     = 4

	ContentSize    = 36
	ContentPayload = 4
	BlobMime       = 0
	BlobData       = 8
	LinkURI        = 0
	LinkTitle      = 8
	LinkMime       = 20

	optionPayload = 4 // offset of the string in an option<string>
)

// LiftDescribe lifts the result of tools#describe. More than limit bytes are a Fault.
func LiftDescribe(m Memory, ptr uint32, limit int) (string, error) {
	b, err := m.aligned("describe", ptr, 8, 4)
	if err != nil {
		return "", err
	}
	return m.stringAt("describe", b, limit)
}

// LiftCall lifts the result of tools#call. If err is nil, exactly one of output and tool
// error is set. The message of the tool error is without secrets.
func LiftCall(m Memory, ptr uint32, known *redact.Redactor) (*Output, *ToolError, error) {
	b, err := m.aligned("result", ptr, ResultSize, 4)
	if err != nil {
		return nil, nil, err
	}
	switch b[0] {
	case 0:
		out, err := liftOutput(m, b[ResultPayload:])
		return out, nil, err
	case 1:
		te, err := liftError(m, b[ResultPayload:], known)
		return nil, te, err
	}
	return nil, nil, faultf("result: discriminant %d", b[0])
}

func liftError(m Memory, b []byte, known *redact.Redactor) (*ToolError, error) {
	te := &ToolError{Case: ErrorCase(b[0]), Native: true}
	switch {
	case te.Case > Failed:
		return nil, faultf("error: discriminant %d", b[0])
	case te.Case == Cancelled:
		return te, nil
	}
	ptr, n := pair(b[ErrorPayload:])
	var err error
	te.Message, err = m.Head("error", ptr, n, maxMessageBytes, known)
	return te, err
}

func liftOutput(m Memory, b []byte) (*Output, error) {
	out := &Output{}
	budget := MaxResultBytes
	switch b[OutputStructured] {
	case 0:
	case 1:
		var err error
		if out.Structured, err = m.stringAt("structured", b[OutputStructured+optionPayload:], budget); err != nil {
			return nil, err
		}
		budget -= len(out.Structured)
	default:
		return nil, faultf("structured: discriminant %d", b[OutputStructured])
	}
	ptr, n := pair(b[OutputContent:])
	if n > maxContents {
		return nil, faultf("content: %d elements, more than the limit of %d", n, maxContents)
	}
	if n == 0 {
		return out, nil
	}
	list, err := m.aligned("content", ptr, n*ContentSize, 4)
	if err != nil {
		return nil, err
	}
	var images Images
	for i := range n {
		c, err := liftContent(m, list[i*ContentSize:], &budget, &images)
		if err != nil {
			return nil, err
		}
		out.Content = append(out.Content, c)
	}
	return out, nil
}

func liftContent(m Memory, b []byte, budget *int, images *Images) (Content, error) {
	c := Content{Kind: ContentKind(b[0])}
	b = b[ContentPayload:]
	text := func(what string, at int, into *string) error {
		s, err := m.stringAt(what, b[at:], *budget)
		*into = s
		*budget -= len(s)
		return err
	}
	optional := func(what string, at int, into *string) error {
		switch b[at] {
		case 0:
			return nil
		case 1:
			return text(what, at+optionPayload, into)
		}
		return faultf("%s: discriminant %d", what, b[at])
	}
	switch c.Kind {
	case ContentText, ContentJSON:
		return c, text("content", 0, &c.Text)
	case ContentImage:
		if err := text("image", BlobMime, &c.Mime); err != nil {
			return c, err
		}
		ptr, n := pair(b[BlobData:])
		data, err := m.viewLimited("image", ptr, n, *budget)
		*budget -= int(n)
		if err == nil && n > 0 && images.Add(int(n)) {
			c.Data = bytes.Clone(data)
		}
		return c, err
	case ContentResource:
		if err := text("resource", LinkURI, &c.Text); err != nil {
			return c, err
		}
		if err := optional("title", LinkTitle, &c.Title); err != nil {
			return c, err
		}
		return c, optional("mime", LinkMime, &c.Mime)
	}
	return c, faultf("content: discriminant %d", c.Kind)
}
