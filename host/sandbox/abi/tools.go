package abi

// Limits on what a guest returns. The result as the model gets it is cut to
// its own limit later; these keep a guest from making the host copy its whole
// memory several times over.
const (
	MaxResultBytes  = 32 << 20
	maxContents     = 1024
	maxMessageBytes = 64 << 10
)

// ContentKind is the case of a content.
type ContentKind uint8

// The cases of `variant content`.
const (
	ContentText ContentKind = iota
	ContentJSON
	ContentImage
	ContentResource
)

// Content is one piece of an output.
type Content struct {
	Kind  ContentKind
	Text  string // of text and json; the URI of a resource
	Title string // of a resource
	Mime  string // of an image or a resource
	Data  []byte // of an image
}

// Output is what a tool returns.
type Output struct {
	Content    []Content
	Structured string // JSON text as the guest wrote it; empty when there is none
}

// ErrorCase is the case of an error.
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
	Message string // empty for Cancelled
}

// LiftDescribe lifts the result of tools#describe.
func LiftDescribe(m Memory, ptr uint32, limit int) (string, error) {
	b, err := m.aligned("describe", ptr, 8, 4)
	if err != nil {
		return "", err
	}
	return m.stringAt("describe", b, limit)
}

// Layout of `result<output, error>`: the discriminant, then the payload at 4.
// `output` is a list (pointer, length) and an optional string (discriminant,
// pointer, length); `error` is a discriminant and a string at 4.
const resultSize = 24

// contentSize is the size of `variant content`: the discriminant padded to 4,
// and `link` as the largest payload: a string (8) and two optional strings (12
// each).
const contentSize = 4 + 8 + 12 + 12

// LiftCall lifts the result of tools#call. Exactly one of the first two
// results is set unless the error is.
func LiftCall(m Memory, ptr uint32) (*Output, *ToolError, error) {
	b, err := m.aligned("result", ptr, resultSize, 4)
	if err != nil {
		return nil, nil, err
	}
	switch b[0] {
	case 0:
		out, err := liftOutput(m, b[4:])
		return out, nil, err
	case 1:
		te, err := liftError(m, b[4:])
		return nil, te, err
	}
	return nil, nil, faultf("result: discriminant %d", b[0])
}

func liftError(m Memory, b []byte) (*ToolError, error) {
	te := &ToolError{Case: ErrorCase(b[0])}
	switch {
	case te.Case > Failed:
		return nil, faultf("error: discriminant %d", b[0])
	case te.Case == Cancelled:
		return te, nil
	}
	ptr, n := pair(b[4:])
	cut := n > maxMessageBytes
	var err error
	te.Message, err = m.String("error", ptr, min(n, maxMessageBytes), maxMessageBytes)
	if cut {
		te.Message += " ..."
	}
	return te, err
}

func liftOutput(m Memory, b []byte) (*Output, error) {
	out := &Output{}
	budget := MaxResultBytes
	switch b[8] {
	case 0:
	case 1:
		var err error
		if out.Structured, err = m.stringAt("structured", b[12:], budget); err != nil {
			return nil, err
		}
		budget -= len(out.Structured)
	default:
		return nil, faultf("structured: discriminant %d", b[8])
	}
	ptr, n := pair(b)
	if n > maxContents {
		return nil, faultf("content: %d elements, more than the limit of %d", n, maxContents)
	}
	if n == 0 {
		return out, nil
	}
	list, err := m.aligned("content", ptr, n*contentSize, 4)
	if err != nil {
		return nil, err
	}
	for i := range n {
		c, err := liftContent(m, list[i*contentSize:], &budget)
		if err != nil {
			return nil, err
		}
		out.Content = append(out.Content, c)
	}
	return out, nil
}

func liftContent(m Memory, b []byte, budget *int) (Content, error) {
	c := Content{Kind: ContentKind(b[0])}
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
			return text(what, at+4, into)
		}
		return faultf("%s: discriminant %d", what, b[at])
	}
	switch c.Kind {
	case ContentText, ContentJSON:
		return c, text("content", 4, &c.Text)
	case ContentImage:
		if err := text("image", 4, &c.Mime); err != nil {
			return c, err
		}
		ptr, n := pair(b[12:])
		var err error
		c.Data, err = m.Bytes("image", ptr, n, *budget)
		*budget -= len(c.Data)
		return c, err
	case ContentResource:
		if err := text("resource", 4, &c.Text); err != nil {
			return c, err
		}
		if err := optional("title", 12, &c.Title); err != nil {
			return c, err
		}
		return c, optional("mime", 24, &c.Mime)
	}
	return c, faultf("content: discriminant %d", b[0])
}
