module github.com/stockade-dev/stockade/host/internal/peers

go 1.26.0

require (
	github.com/bytecodealliance/wasmtime-go/v37 v37.0.0
	github.com/stockade-dev/stockade v0.0.0
	github.com/tetratelabs/wazero v1.12.0
	golang.org/x/sys v0.49.0
)

require github.com/google/jsonschema-go v0.4.3 // indirect

replace github.com/stockade-dev/stockade => ../../..
