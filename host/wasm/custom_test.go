package wasm_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

func TestAppendCustomReplacesWhatHadTheName(t *testing.T) {
	data := full() // with two sections "note"
	original := bytes.Clone(data)
	out, err := wasm.AppendCustom(data, "note", []byte("third"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, original) {
		t.Error("the input was changed")
	}
	before, err := wasm.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	after, err := wasm.Decode(out)
	if err != nil {
		t.Fatal(err)
	}
	if len(after.Customs) != 1 || string(after.Customs[0].Data) != "third" {
		t.Errorf("custom sections are %v", after.Customs)
	}
	if end := before.Customs[0].Offset; !bytes.Equal(data[:end], out[:end]) {
		t.Error("other sections changed")
	}
	plain := wasm.WithoutCustom(after, "note")
	if m, err := wasm.Decode(plain); err != nil || len(m.Customs) != 0 || !bytes.Equal(plain, wasm.WithoutCustom(before, "note")) {
		t.Errorf("without the name there is something of it, or less of the others: %v", err)
	}
	again, err := wasm.AppendCustom(out, "note", []byte("third"))
	if err != nil || !bytes.Equal(out, again) {
		t.Errorf("appending twice gives another file (%v)", err)
	}
}

func TestAppendCustomRefuses(t *testing.T) {
	crowded := module(bytes.Repeat(section(wasm.SectionCustom, 1, 'x'), wasm.MaxSections))
	tests := []struct {
		what    string
		data    []byte
		name    string
		payload int
		want    string
	}{
		{"a file that is no module", []byte("text"), "n", 0, "not a WebAssembly module"},
		{"a name that is not UTF-8", full(), "\xff", 0, "not UTF-8"},
		{"a name that is too long", full(), strings.Repeat("n", wasm.MaxNameBytes+1), 0, "at most 4096"},
		{"one section too many", crowded, "n", 0, "1025 sections"},
		{"a payload that is too large", full(), "n", wasm.MaxModuleBytes, "too large"},
	}
	for _, test := range tests {
		out, err := wasm.AppendCustom(test.data, test.name, make([]byte, test.payload))
		if out != nil || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v", test.what, err)
		}
	}
	if _, err := wasm.AppendCustom(crowded, "x", nil); err != nil {
		t.Errorf("replacing in a crowded module: %v", err)
	}
	if _, err := wasm.AppendCustom(full(), "n", make([]byte, wasm.MaxModuleBytes)); !errors.Is(err, wasm.ErrTooLarge) {
		t.Errorf("got %v, want %v", err, wasm.ErrTooLarge)
	}
}

func TestCustomSectionFindsTheManifest(t *testing.T) {
	m, err := wasm.Decode(wasmtest.Tool(wasmtest.ToolOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := wasm.CustomSection(m, wasm.ManifestSection); !ok || string(got) != wasmtest.Manifest {
		t.Errorf("manifest is %q, %v", got, ok)
	}
	if got, ok := wasm.CustomSection(m, "other"); ok || got != nil {
		t.Errorf("found %q", got)
	}
}
