//go:build linux

package seccomp

var callsHere []try

const machine = 183 // EM_AARCH64

// foreignCode is empty: code of 32 bits does not run in a process of 64.
var foreignCode map[string][]byte
