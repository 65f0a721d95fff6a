package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

type warmPart struct {
	Name  string
	Deep  *warmPart `json:",omitempty"`
	Odd   error     `json:"-"`
	When  time.Time
	Parts []warmPart
}

type warmArgs struct {
	Text   string          `json:"text"`
	Count  int8            `json:"count"`
	Size   uint16          `json:"size"`
	Ratio  float32         `json:"ratio"`
	Really bool            `json:"really"`
	Blob   []byte          `json:"blob"`
	Any    any             `json:"any"`
	Raw    json.RawMessage `json:"raw"`
	Map    map[string]int  `json:"map"`
	Array  [2]string       `json:"array"`
	Ptr    *int            `json:"ptr,omitempty"`
}

type angry struct{ X int }

func (angry) MarshalJSON() ([]byte, error) { panic("not with such data") }

// Warming up takes the same steps as a call, for all types, and never calls a tool.
func TestWarm(t *testing.T) {
	r := new(registry)
	r.setModule("warm", "0.1.0")
	add := func(e *entry, err error) *entry {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.add(e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	var called error
	good := add(newEntry("good", "Good.", func(context.Context, warmArgs) (warmPart, error) {
		called = errors.New("it was called")
		return warmPart{}, nil
	}, ReadsFiles()))
	bad := add(newEntry("bad", "Bad.", func(context.Context, struct{}) (angry, error) { return angry{}, nil }))
	r.warm()
	if called != nil {
		t.Error(called)
	}
	if text := string(good.warm()); !strings.Contains(text, `"Name":"sample"`) || !strings.Contains(text, `"Parts":[{`) {
		t.Errorf("the result is %s", text)
	}
	if text := bad.warm(); text != nil {
		t.Errorf("a type that panics gives %s", text)
	}
}
