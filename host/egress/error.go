package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/stockade-dev/stockade/host/services"
)

func fail(kind services.Kind, err error) *services.Error {
	return &services.Error{Kind: kind, Err: err}
}

func failf(kind services.Kind, format string, args ...any) *services.Error {
	return &services.Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// phaseError returns err, which is not nil, as the error of a phase; what names the phase in
// the text. A [services.Error] is returned as it is. A timeout gets the kind
// [services.Timeout], any other error gets kind.
func phaseError(kind services.Kind, what string, err error) error {
	if e, ok := errors.AsType[*services.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && !e.IsTimeout {
		return &services.Error{Kind: kind, Err: &nameError{what, e}, Final: e.IsNotFound}
	}
	if timedOut(err) {
		return failf(services.Timeout, "%s: no answer in time (%w)", what, err)
	}
	e := failf(kind, "%s: %w", what, err)
	if wrong, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		e.Final, e.Hint = true, "another server may answer, such as a login page: open the address in a browser"
		if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
			e.Err = fmt.Errorf("%s: its certificate is from %.100q, which is not trusted here: %w", what, wrong.UnverifiedCertificates[0].Issuer.String(), err)
			e.Hint = "if your network inspects TLS, name the file of its certificate authority: network.ca_files = [\"/PATH/ca.pem\"] in your own agent.toml"
		}
		if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
			e.Hint = "check the clock of this machine; if it is right, the server needs a new certificate"
		}
	}
	return e
}

// nameError is the error of a resolver, without the address of the name server.
type nameError struct {
	what string
	*net.DNSError
}

func (e *nameError) Error() string {
	if e.IsNotFound {
		return "no such host: " + strings.TrimSuffix(e.Name, ".")
	}
	return e.what + ": " + e.Err
}

func (e *nameError) Unwrap() error { return e.DNSError }

func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}
