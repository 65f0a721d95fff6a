package tool

import "testing"

func TestAllowanceArithmetic(t *testing.T) {
	a := Allowance{Read: []string{"/b", "/a"}, Hosts: []string{"x.example"}, Exec: true, Store: true}
	b := Allowance{Read: []string{"/b", "/c"}, Write: []string{"/w"}, Secrets: []string{"s"}}
	for what, c := range map[string]struct{ got, want Allowance }{
		"both":                         {a.With(b), Allowance{Read: []string{"/a", "/b", "/c"}, Write: []string{"/w"}, Hosts: []string{"x.example"}, Secrets: []string{"s"}, Exec: true, Store: true}},
		"the one without the other":    {a.Without(b), Allowance{Read: []string{"/a"}, Hosts: []string{"x.example"}, Exec: true, Store: true}},
		"commands are taken back, too": {a.Without(Allowance{Exec: true}), Allowance{Read: []string{"/b", "/a"}, Hosts: []string{"x.example"}, Store: true}},
		"and so is a store":            {a.Without(Allowance{Store: true}), Allowance{Read: []string{"/b", "/a"}, Hosts: []string{"x.example"}, Exec: true}},
	} {
		if !c.got.Equal(c.want) || c.got.IsZero() {
			t.Errorf("%s: %+v, not %+v", what, c.got, c.want)
		}
	}
	if !a.Without(a).IsZero() || !(Allowance{}).With(Allowance{}).IsZero() {
		t.Error("something is left of nothing")
	}
	if a.Read[0] != "/b" {
		t.Error("an operand was changed")
	}
}
