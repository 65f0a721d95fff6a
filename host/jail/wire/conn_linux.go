package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// Send writes a message with descriptors to a blocking socket. The descriptors stay open.
func Send(socket int, message any, fds ...int) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	data := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	for len(data) > 0 {
		n, err := unix.SendmsgN(socket, data, rights, nil, unix.MSG_NOSIGNAL)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		data, rights = data[n:], nil
	}
	return nil
}

// Receive reads a message from a blocking socket, and returns the descriptors that came with
// it. The error is io.EOF if the other side is gone.
func Receive(socket int, message any) (fds []int, err error) {
	var head [4]byte
	if fds, err = read(socket, head[:], nil); err != nil {
		return fds, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > MaxMessage {
		return fds, fmt.Errorf("a message of %d bytes; it can have %d", n, MaxMessage)
	}
	body := make([]byte, n)
	if fds, err = read(socket, body, fds); err != nil {
		return fds, err
	}
	return fds, json.Unmarshal(body, message)
}

// WarmUp encodes and decodes the messages that follow a [World] once, because the first time
// takes longest.
func WarmUp() {
	for _, message := range []any{&Command{Argv: []string{""}}, &Started{}, &Ended{}} {
		if body, err := json.Marshal(message); err == nil {
			_ = json.Unmarshal(body, message)
		}
	}
}

// read fills data, and adds the descriptors that come with it to fds.
func read(socket int, data []byte, fds []int) ([]int, error) {
	rights := make([]byte, unix.CmsgSpace(4*4))
	for len(data) > 0 {
		n, got, flags, _, err := unix.Recvmsg(socket, data, rights, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fds, err
		}
		messages, err := unix.ParseSocketControlMessage(rights[:got])
		if err != nil {
			return fds, err
		}
		for _, m := range messages {
			if more, err := unix.ParseUnixRights(&m); err == nil {
				fds = append(fds, more...)
			}
		}
		if flags&unix.MSG_CTRUNC != 0 {
			return fds, errors.New("a message with too many descriptors")
		}
		if n == 0 {
			return fds, io.EOF
		}
		data = data[n:]
	}
	return fds, nil
}
