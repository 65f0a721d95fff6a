package command

import (
	"testing"

	"github.com/stockade-dev/stockade/host/tool"
)

// FuzzParseSchema looks for an output of --schema that becomes a tool which no manifest may
// have.
func FuzzParseSchema(f *testing.F) {
	f.Add(`{"name":"bash","description":"Run.","parameters":{"command":{"type":"string","required":true}},"returns":{}}`)
	f.Add(`{"name":"a","description":"b","parameters":{"x":{"type":"object","required":["y"]}},"Name":"c"}`)
	f.Add(`{"name":"a","description":"b","parameters":null}`)
	f.Add(` {"name":"\u0061","description":"\u0000","parameters":{"":{}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := parseSchema([]byte(text))
		if err != nil {
			return
		}
		m, err := tool.ParseManifest(tool.Marshal(tool.Manifest{ABI: tool.ABICommand, Name: "m", Tools: []tool.Spec{spec}, Inferred: true}))
		if err != nil {
			if len(spec.Description) > 8<<10 || len(text) > tool.MaxManifestBytes/8 {
				return // what is too long is said where manifests are checked
			}
			t.Fatalf("%q became %+v: %v", text, spec, err)
		}
		if _, err := tool.CompileSchema(m.Tools[0].Parameters); err != nil {
			t.Fatalf("%q became %s: %v", text, spec.Parameters, err)
		}
	})
}
