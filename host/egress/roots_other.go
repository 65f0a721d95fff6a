//go:build !unix || darwin

package egress

import "crypto/x509"

// systemRoots are the authorities that the system trusts, which it looks up
// itself.
func systemRoots() (*x509.CertPool, error) { return x509.SystemCertPool() }
