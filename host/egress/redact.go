package egress

import (
	"errors"

	"github.com/stockade-dev/stockade/host/services"
)

// redactError returns an error without secrets in its text: our errors quote servers. An error
// whose text held one then wraps no other error.
func (e *Egress) redactError(err error) error {
	f, ok := errors.AsType[*services.Error](err)
	if !ok {
		return err
	}
	text := f.Err.Error()
	clean := e.opts.Redact.Text(text)
	if clean == text {
		return err
	}
	return &services.Error{Kind: f.Kind, Limit: f.Limit, Err: errors.New(clean), Hint: f.Hint, Final: f.Final}
}

func (e *Egress) redactBody(body []byte) []byte {
	if e.opts.Redact.Longest() == 0 {
		return body
	}
	return []byte(e.opts.Redact.Text(string(body)))
}
