package abi

// Sentinel returns an error with this text, for errors.Is. If base is not nil, the error also
// is base: a refusal by any import of the host is fs.ErrPermission.
func Sentinel(text string, base error) error { return &sentinel{text, base} }

type sentinel struct {
	text string
	base error
}

func (s *sentinel) Error() string { return s.text }
func (s *sentinel) Unwrap() error { return s.base }
