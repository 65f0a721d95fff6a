package abi

// Sentinel returns an error to compare with that reads text and is also base
// for errors.Is, if base is not nil: so a refusal by the host is known as
// fs.ErrPermission without the caller knowing which import refused.
func Sentinel(text string, base error) error { return &sentinel{text, base} }

type sentinel struct {
	text string
	base error
}

func (s *sentinel) Error() string { return s.text }
func (s *sentinel) Unwrap() error { return s.base }
