package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// connectTCP opens a TCP connection to an address, and makes sure that it is to no other.
func connectTCP(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	want := addr.String()
	dialer := net.Dialer{
		FallbackDelay: -1, // there is one address
		Control: func(_, address string, _ syscall.RawConn) error {
			if address != want {
				return fmt.Errorf("about to connect to %s instead of %s", address, want)
			}
			return nil
		},
	}
	dialer.SetMultipathTCP(false)
	return dialer.DialContext(ctx, "tcp", want)
}
