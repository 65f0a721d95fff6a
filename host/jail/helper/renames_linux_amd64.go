package main

import "golang.org/x/sys/unix"

const sysRename = unix.SYS_RENAME
