//go:build !unix || darwin

package egress

import "crypto/x509"

// systemRoots returns the authorities that the system trusts, as Go finds them.
func systemRoots() (*x509.CertPool, error) { return x509.SystemCertPool() }
