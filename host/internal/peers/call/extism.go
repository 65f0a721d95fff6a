//go:build bench

package main

import (
	"context"
	"errors"

	extism "github.com/extism/go-sdk"
)

// extismWay makes an instance of a plug-in for each call, as Extism's documentation
// recommends. Its code is already compiled; nothing is metered.
type extismWay struct {
	plugin *extism.CompiledPlugin
	args   []byte
}

func newExtism(j job, dir string) (way, error) {
	file, err := buildPlugin(j.name)
	if err != nil {
		return nil, err
	}
	plugin, err := extism.NewCompiledPlugin(context.Background(), extism.Manifest{
		Wasm:         []extism.Wasm{extism.WasmFile{Path: file}},
		AllowedPaths: map[string]string{"ro:" + dir: dir},
	}, extism.PluginConfig{EnableWasi: true}, nil)
	return &extismWay{plugin, []byte(j.arguments(dir))}, err
}

func (w *extismWay) call(ctx context.Context) (out []byte, err error) {
	instance, err := w.plugin.Instance(ctx, extism.PluginInstanceConfig{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, instance.CloseWithContext(ctx)) }()
	_, out, err = instance.CallWithContext(ctx, "run", w.args)
	return out, err
}

func (w *extismWay) close() error { return w.plugin.Close(context.Background()) }
