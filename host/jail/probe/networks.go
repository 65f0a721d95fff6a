//go:build linux

package probe

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// networks lists attacks on ports and sockets of the victim, and ways to send without a port.
var networks = []probe{
	{"tcp", func(s Spec) error { return connect(unix.AF_INET, unix.SOCK_STREAM, 0, local(s.Ports["tcp"])) }},
	{"mptcp", func(s Spec) error {
		return connect(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, local(s.Ports["mptcp"]))
	}},
	{"tcp fast open", func(s Spec) error {
		return withSocket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) error {
			return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN|unix.MSG_NOSIGNAL, local(s.Ports["tcp fast open"]))
		})
	}},
	{"tcp listen", func(s Spec) error {
		err := withSocket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) error {
			if err := unix.Bind(fd, local(0)); err != nil {
				return err
			}
			return unix.Listen(fd, 1)
		})
		if own, _ := os.Readlink(networkNamespace); err == nil && own != "" && own != s.Networks {
			return errors.New("in a network of its own")
		}
		return err
	}},
	{"udp", func(s Spec) error {
		return withSocket(unix.AF_INET, unix.SOCK_DGRAM, 0, func(fd int) error {
			if err := unix.Connect(fd, local(s.Ports["udp"])); err != nil {
				return err
			}
			for range 2 { // the second send fails if nobody received the first
				if err := unix.Send(fd, []byte("x"), 0); err != nil {
					return err
				}
			}
			return nil
		})
	}},
	{"unix socket", func(s Spec) error {
		return connect(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: s.socket()})
	}},
	{"abstract socket", func(s Spec) error {
		return connect(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: s.abstract()})
	}},
	{"raw socket", func(Spec) error { return withSocket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, nil) }},
	{"netlink", func(Spec) error { return withSocket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE, nil) }},
	{"packet socket", func(Spec) error { return withSocket(unix.AF_PACKET, unix.SOCK_RAW, 0, nil) }},
	{"vsock", func(Spec) error { return withSocket(unix.AF_VSOCK, unix.SOCK_STREAM, 0, nil) }},
	{"af_alg", func(Spec) error {
		return withSocket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0, func(fd int) error {
			return unix.Bind(fd, &unix.SockaddrALG{Type: "hash", Name: "sha256"})
		})
	}},
}

const networkNamespace = "/proc/self/ns/net"

func local(port int) unix.Sockaddr {
	return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
}

// withSocket opens a socket and calls do, if not nil, with the socket.
func withSocket(family, kind, protocol int, do func(fd int) error) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	switch err {
	case nil:
	case unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT:
		return impossible("the kernel does not have it: " + err.Error())
	default:
		return err
	}
	defer unix.Close(fd)
	// The victim is on this machine: it answers immediately or never.
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 1})
	if do == nil {
		return nil
	}
	return do(fd)
}

func connect(family, kind, protocol int, to unix.Sockaddr) error {
	return withSocket(family, kind, protocol, func(fd int) error { return unix.Connect(fd, to) })
}
