package dispatch

import (
	"encoding/json"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
)

func TestADeniedToolIsNotShownToTheModel(t *testing.T) {
	names := func(opts policy.Options) map[string]bool {
		out := map[string]bool{}
		for _, def := range New(newWorld(t, opts).options).Definitions() {
			out[def.Name] = true
		}
		return out
	}
	all := names(policy.Options{})
	left := names(policy.Options{Rules: []policy.Rule{{Effect: policy.Deny, Tool: "file_write"}}})
	if !all["file_write"] || left["file_write"] || len(left) != len(all)-1 {
		t.Errorf("of %v are shown %v", all, left)
	}
}

func TestADenialCarriesItsFactsAsData(t *testing.T) {
	w := newWorld(t, policy.Options{Rules: []policy.Rule{{Effect: policy.Deny, Tool: "file_write", Source: policy.SourceUser, Origin: "f:1"}}})
	r, err := New(w.options).Call(t.Context(), aCall("file_write", `{}`))
	if err != nil || r.Err == nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	var envelope struct {
		Denial policy.Explanation `json:"denial"`
	}
	if err := json.Unmarshal(r.Envelope(), &envelope); err != nil {
		t.Fatal(err)
	}
	if x := envelope.Denial; x.Effect != "deny" || x.Source != policy.SourceUser || x.Origin != "f:1" || x.Rule != "file_write" || x.HintText == "" || x.Risk != "medium" {
		t.Errorf("got %+v", x)
	}
}
