package tool

import (
	"time"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

// The exports of world tool-module, as wit/README.md names them. Their
// arguments are the flattened parameters of the functions in wit/tools.wit.

//go:wasmexport stockade:tool/tools@0.1.0#describe
func exportDescribe() uint32 { return std.describe() }

//go:wasmexport cabi_post_stockade:tool/tools@0.1.0#describe
func postDescribe(ptr uint32) { abi.Post(ptr) }

//go:wasmexport stockade:warm
func exportWarm() { std.warm() }

//go:wasmexport stockade:tool/tools@0.1.0#call
func exportCall(
	idPtr, idLen uint32,
	dirPtr, dirLen uint32,
	hasDeadline uint32, deadlineMillis uint64,
	hasLocale, localePtr, localeLen uint32,
	namePtr, nameLen uint32,
	argsPtr, argsLen uint32,
) uint32 {
	call := Call{ID: string(abi.Take(idPtr, idLen)), Dir: string(abi.Take(dirPtr, dirLen))}
	if hasDeadline != 0 {
		call.Deadline = deadlineAfter(time.Now(), deadlineMillis)
	}
	if hasLocale != 0 {
		call.Locale = string(abi.Take(localePtr, localeLen))
	}
	name := string(abi.Take(namePtr, nameLen))
	return lower(std.call(call, name, abi.Take(argsPtr, argsLen)))
}

//go:wasmexport cabi_post_stockade:tool/tools@0.1.0#call
func postCall(ptr uint32) { abi.Post(ptr) }
