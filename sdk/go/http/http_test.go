//go:build !wasip1

package http

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

// got is the request that the fake host received.
type got struct {
	Method, URL           string
	Headers               []string
	HasBody               uint32
	Body                  string
	HasTimeout, Millis    uint32
	HasMaxBytes, MaxBytes uint32
}

func fake(t *testing.T, answer func(r abi.Record, f *abi.Frame)) *got {
	t.Helper()
	g := new(got)
	hostFetch = func(methodPtr, methodLen, urlPtr, urlLen, headersPtr, headersLen,
		hasBody, bodyPtr, bodyLen, hasTimeout, millis, hasMax, maxBytes, ret uint32) {
		list := abi.Record(abi.Take(headersPtr, headersLen*16))
		for i := range headersLen * 2 {
			g.Headers = append(g.Headers, list.Text(i*8))
		}
		g.Method, g.URL = string(abi.Take(methodPtr, methodLen)), string(abi.Take(urlPtr, urlLen))
		g.HasBody, g.Body = hasBody, string(abi.Take(bodyPtr, bodyLen))
		g.HasTimeout, g.Millis, g.HasMaxBytes, g.MaxBytes = hasTimeout, millis, hasMax, maxBytes
		answer(abi.Take(ret, 40), new(abi.Frame))
	}
	t.Cleanup(func() {
		if n := abi.Live(); n != 0 {
			t.Errorf("%d blocks left", n)
		}
	})
	return g
}

func TestFetchLowersTheRequest(t *testing.T) {
	tests := map[string]struct {
		req  Request
		want got
	}{
		"the least": {Request{URL: "https://a/"}, got{Method: "GET", URL: "https://a/"}},
		"empty body": {
			Request{Method: "POST", URL: "u", Body: []byte{}},
			got{Method: "POST", URL: "u", HasBody: 1},
		},
		"everything": {
			Request{Method: "PUT", URL: "u", Headers: []Header{{"a", "1"}, {"b", ""}}, Body: []byte("B"), Timeout: time.Second, MaxBytes: 7},
			got{Method: "PUT", URL: "u", Headers: []string{"a", "1", "b", ""}, HasBody: 1, Body: "B", HasTimeout: 1, Millis: 1000, HasMaxBytes: 1, MaxBytes: 7},
		},
		"a moment": {
			Request{Method: "PUT", URL: "u", Timeout: time.Nanosecond},
			got{Method: "PUT", URL: "u", HasTimeout: 1, Millis: 1},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := fake(t, func(abi.Record, *abi.Frame) {})
			if _, err := Fetch(t.Context(), tt.req); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, *g); diff != "" {
				t.Errorf("host got (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFetchIsBoundByTheContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	g := fake(t, func(abi.Record, *abi.Frame) {})
	if _, err := Fetch(ctx, Request{URL: "u"}); err != nil || g.HasTimeout != 1 || g.Millis == 0 || g.Millis > 3_600_000 {
		t.Errorf("timeout %d ms, error %v", g.Millis, err)
	}
	cancel()
	if _, err := Fetch(ctx, Request{URL: "u"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call fetched: %v", err)
	}
}

func TestFetchLiftsTheResponse(t *testing.T) {
	fake(t, func(r abi.Record, f *abi.Frame) {
		r.SetU16(8, 599)
		r.SetPair(12)(f.Text("https://b/"))
		r.SetPair(20)(f.Texts([]string{"n", "v", "m", ""}), 2)
		r.SetPair(28)(f.Bytes([]byte{0, 1}))
		r.SetCase(36, 1)
	})
	resp, err := Fetch(t.Context(), Request{URL: "u"})
	if err != nil {
		t.Fatal(err)
	}
	want := &Response{Status: 599, URL: "https://b/", Headers: []Header{{"n", "v"}, {"m", ""}}, Body: []byte{0, 1}, Truncated: true}
	if diff := cmp.Diff(want, resp); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
}

func TestFetchErrors(t *testing.T) {
	wants := []error{ErrDenied, ErrInvalid, ErrDNS, ErrConnect, ErrTLS, ErrTimeout, nil, ErrProtocol}
	for i, want := range wants {
		fake(t, func(r abi.Record, f *abi.Frame) {
			r.SetCase(0, 1)
			r.SetCase(8, uint8(i))
			switch want {
			case ErrTimeout:
			case nil:
				r.SetU64(16, 1<<40)
			default:
				r.SetPair(16)(f.Text("because"))
			}
		})
		_, err := Fetch(t.Context(), Request{URL: "u"})
		switch want {
		case nil:
			if large, ok := errors.AsType[*TooLargeError](err); !ok || large.Limit != 1<<40 {
				t.Errorf("case %d is %v", i, err)
			}
		case ErrTimeout:
			if !errors.Is(err, ErrTimeout) || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("case %d is %v", i, err)
			}
		default:
			if !errors.Is(err, want) || err.Error() != want.Error()+": because" {
				t.Errorf("case %d is %v", i, err)
			}
		}
	}
	if !errors.Is(ErrDenied, fs.ErrPermission) {
		t.Error("a denial is not fs.ErrPermission")
	}
}
