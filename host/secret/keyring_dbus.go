//go:build !darwin && !windows

package secret

import (
	"errors"
	"fmt"
	"os"
)

// keyringReachable keeps the library from starting a D-Bus of its own where
// there is none: a program would be started that nobody asked for, and a
// keyring on it would be empty and gone with it.
func keyringReachable() error {
	if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" && address != "autolaunch:" {
		return nil
	}
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat(fmt.Sprintf("/run/user/%d/%s", os.Getuid(), name)); err == nil {
			return nil
		}
	}
	return errors.New("there is no D-Bus session, and so no Secret Service")
}
