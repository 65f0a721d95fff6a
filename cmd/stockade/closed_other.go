//go:build !cgo || !unix

package main

func stdoutClosed() bool { return false } // it cannot be told
