package egress

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// Authorities holds the certificate authorities of one file.
type Authorities struct {
	Name string // name of the file, for errors
	PEM  []byte // content of the file
}

// parse returns all certificates of the file. Package x509 skips unreadable ones; here they are
// an error, because somebody wanted them to be trusted.
func (a Authorities) parse() ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for rest := a.PEM; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, a.wrong(fmt.Errorf("it holds %.40q, which is no certificate", block.Type))
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, a.wrong(err)
		}
		certs = append(certs, cert)
	}
	switch begun := bytes.Count(a.PEM, []byte("-----BEGIN ")); {
	case begun == 0:
		return nil, a.wrong(errors.New("there is no certificate in PEM"))
	case begun != len(certs):
		return nil, a.wrong(fmt.Errorf("of %d certificates in PEM, %d can be read", begun, len(certs)))
	}
	return certs, nil
}

func (a Authorities) wrong(err error) error {
	return fmt.Errorf("certificate authorities in %s: %w", a.Name, err)
}
