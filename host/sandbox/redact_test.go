package sandbox_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// TestNoPieceOfASecretIsLeftAtACut runs guests that repeat their arguments in every way in
// which a guest can output text, with a secret across every place at which the text is cut.
func TestNoPieceOfASecretIsLeftAtACut(t *testing.T) {
	const (
		value  = "Zq7-Xk9_Wv3+Jh5/Ty1=Mn8"
		output = 400  // of a result and of an error
		logged = 4300 // of a call, stderr included; a message has 4096, a note 200
		length = 5000 // of the arguments
		iovec  = dataAt
	)
	begin := 0
	known := new(redact.Redactor)
	known.Add(value)
	box := newBox(t, sandbox.Options{Redact: known})
	tell := code(
		w.I32Const(3), w.LocalGet(w.ParamArgs), w.LocalGet(w.ParamArgsLen), w.Call(0),
		w.I64Const(1), w.I32Const(0), w.I64Const(0), w.LocalGet(w.ParamArgs), w.LocalGet(w.ParamArgsLen), w.Call(1),
		w.I32Const(iovec), w.LocalGet(w.ParamArgs), w.I32Store(0), w.I32Const(iovec), w.LocalGet(w.ParamArgsLen), w.I32Store(4),
		w.I32Const(2), w.I32Const(iovec), w.I32Const(1), w.I32Const(iovec+8), w.Call(2), w.Drop(),
	)
	fail := code(w.ReturnWords(w.ResultErr, w.ErrorFailed, 0, 0, 0, 0), w.Drop(),
		w.I32Const(w.ScratchBase), w.LocalGet(w.ParamArgs), w.I32Store(8),
		w.I32Const(w.ScratchBase), w.LocalGet(w.ParamArgsLen), w.I32Store(12), w.I32Const(w.ScratchBase))
	for end, last := range map[string][]byte{"a result": w.EchoArgs(), "an error": fail, "a trap": w.Unreachable()} {
		mod := probe(w.ToolOptions{MemoryMin: 9, Call: code(tell, last), Imports: []w.Import{
			own("log", "log", i32s(3)...), own("progress", "report", w.I64, w.I32, w.I64, w.I32, w.I32),
			wasi("fd_write", i32s(4)...),
		}})
		for form, leak := range map[string]string{"plain": value, "base64": base64.StdEncoding.EncodeToString([]byte(value))} {
			// Across the head of everything, and across the tail of a result.
			for _, at := range [][2]int{{100, 460}, {4040, 4110}, {4250, 4310}, {length - 300, length - 60}} {
				step := 1
				if !hosttest.Whole() {
					step = 7 // in make test, each seventh, which begins elsewhere for each end and form
					begin = (begin + 3) % step
				}
				for before := at[0] + begin; before < at[1]; before += step {
					text := strings.Repeat(".", before) + leak + strings.Repeat(",", length-before)
					args, err := json.Marshal(map[string]string{"output": text})
					if err != nil {
						t.Fatal(err)
					}
					var said []string
					r, err := granted(t, mod, ask{args: string(args), limits: policy.Limits{OutputBytes: output, LogBytes: logged}}).
						runTelling(t.Context(), box, func(p tool.Progress) { said = append(said, p.Message) })
					if err != nil {
						t.Fatal(err)
					}
					if len(said) != 3 {
						t.Fatalf("it said %q", said)
					}
					said = append(said, string(r.Output), fmt.Sprint(r.Err))
					if r.Err != nil {
						said = append(said, r.Err.Stderr)
					}
					for _, s := range said {
						for i := range len(leak) - 3 {
							if strings.Contains(s, leak[i:i+4]) {
								t.Fatalf("%s, %s behind %d bytes: %q is in %q", end, form, before, leak[i:i+4], s)
							}
						}
					}
				}
			}
		}
	}
}
