//go:build unix && !darwin

package egress

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
)

// rootFiles lists the files in which systems keep their certificate authorities, in the order of
// crypto/x509. That package would also read the variables SSL_CERT_FILE and SSL_CERT_DIR, which a
// project can set for the people who work in it.
var rootFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Arch, NixOS
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora, RHEL 6
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/pki/tls/cacert.pem",                           // OpenELEC
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // RHEL 7 and later
	"/etc/ssl/cert.pem",                                 // Alpine, OpenBSD, FreeBSD 12.2 and later
	"/usr/local/share/certs/ca-root-nss.crt",            // FreeBSD, DragonFly
	"/usr/local/etc/ssl/cert.pem",                       // FreeBSD
	"/etc/openssl/certs/ca-certificates.crt",            // NetBSD
	"/etc/certs/ca-certificates.crt",                    // Solaris 11.2 and later
}

// systemRoots returns the authorities of the first file that exists. If there is none, the pool is
// empty.
func systemRoots() (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	for _, name := range rootFiles {
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		pool.AppendCertsFromPEM(data)
		break
	}
	return pool, nil
}
