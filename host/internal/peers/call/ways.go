//go:build bench

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"reflect"

	"github.com/stockade-dev/stockade/host/internal/peers/call/guest"
	"github.com/stockade-dev/stockade/host/sandbox"
)

// way is a way to do a job.
type way interface {
	call(ctx context.Context) ([]byte, error)
	close() error
}

// The ways. The first is ours, and all others are compared with it.
const (
	fresh      = "fresh"
	noise      = "noise"
	reused     = "reused"
	native     = "native"
	extismPeer = "extism"
	wasmtime   = "wasmtime"
)

// peers lists the ways that a fresh call is compared with.
var peers = []string{noise, reused, native, extismPeer, wasmtime}

// newWay prepares a way for a job.
func (s *setup) newWay(name string, j job) (way, error) {
	switch name {
	case fresh, noise:
		return &freshWay{s.box, s.calls[j.name]}, nil
	case reused:
		c := s.calls[j.name]
		l, err := sandbox.NewLeaky(context.Background(), s.box, c.Module, c.Grant.Limits())
		return &reusedWay{l, c}, err
	case native:
		file, err := buildNative(j.name)
		return &nativeWay{file, []byte(j.arguments(s.dir))}, err
	case extismPeer:
		return newExtism(j, s.dir)
	case wasmtime:
		return newWasmtime(s, j)
	}
	return nil, fmt.Errorf("there is no way %s", name)
}

// freshWay makes calls as Stockade does: each finds no state of the one before.
type freshWay struct {
	box  *sandbox.Sandbox
	data *guest.Call
}

func (w *freshWay) call(ctx context.Context) ([]byte, error) { return w.data.Run(ctx, w.box) }
func (w *freshWay) close() error                             { return nil }

// reusedWay is an instance that is reused in the state of the last call.
type reusedWay struct {
	leaky *sandbox.Leaky
	data  *guest.Call
}

func (w *reusedWay) call(ctx context.Context) ([]byte, error) {
	return w.leaky.Call(ctx, w.data.Grant, w.data.Call)
}

func (w *reusedWay) close() error {
	w.leaky.Close()
	return nil
}

// nativeWay starts a process for each call.
type nativeWay struct {
	file string
	args []byte
}

func (w *nativeWay) call(ctx context.Context) ([]byte, error) {
	cmd := exec.CommandContext(ctx, w.file)
	cmd.Stdin = bytes.NewReader(w.args)
	cmd.Stderr = os.Stderr
	return cmd.Output()
}

func (w *nativeWay) close() error { return nil }

// sameJSON compares values: the ways write spaces in different places.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
