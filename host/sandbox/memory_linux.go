package sandbox

import "golang.org/x/sys/unix"

const noReserve = unix.MAP_NORESERVE
