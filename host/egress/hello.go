package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/stockade-dev/stockade/host/policy/network"
)

const (
	maxHello             = 64 << 10 // bytes of the first message of a TLS client; a longer one is an error
	encryptedClientHello = 0xfe0d   // extension that hides the name of the server
)

// accessDenied is the TLS alert access_denied, in the unencrypted form.
var accessDenied = []byte{21, 3, 1, 0, 2, 2, 49}

// readHello reads the first message of a TLS client. read holds all bytes that were read.
// hello is nil, with an error, if the message is not that of a TLS client.
func readHello(r io.Reader) (hello *tls.ClientHelloInfo, read []byte, err error) {
	heard := &listenOnlyConn{r: io.LimitReader(r, maxHello)}
	err = tls.Server(heard, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		hello = h
		return nil, errors.New("that is all we wanted to know")
	}}).HandshakeContext(context.Background()) // maxHello and the relay's idle timer limit the reading
	if hello != nil {
		err = nil
	}
	return hello, heard.read.Bytes(), err
}

// checkHello refuses a TLS client that asks for a server other than host, or does not show which.
// It may only leave out the name of an address.
func checkHello(hello *tls.ClientHelloInfo, host network.Host) error {
	if slices.Contains(hello.Extensions, encryptedClientHello) {
		return fmt.Errorf("the TLS client hides which server it asks for (encrypted client hello); only %s is allowed", host)
	}
	named, err := network.ParseHost(hello.ServerName)
	switch {
	case hello.ServerName == "" && host.IsAddr():
		return nil
	case hello.ServerName == "":
		return fmt.Errorf("the TLS client does not say that it asks for %s (SNI)", host)
	case err != nil || named != host:
		return fmt.Errorf("the TLS client asks for %q (SNI), and only %s is allowed", shorten(hello.ServerName, 200), host)
	}
	return nil
}

// listenOnlyConn is a connection that reads from r, and drops written bytes.
type listenOnlyConn struct {
	net.Conn // always nil: only Read and Write are called
	r        io.Reader
	read     bytes.Buffer // all bytes that were read
}

func (h *listenOnlyConn) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	h.read.Write(p[:n])
	return n, err
}

func (h *listenOnlyConn) Write(p []byte) (int, error) { return len(p), nil }
