package session_test

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
)

// fill returns 32 times the same byte.
func fill(b byte) (d [32]byte) {
	for i := range d {
		d[i] = b
	}
	return d
}

// The digests below were computed by another program from the description of the format.
// They never change: every later version must verify a store that is written today.

func TestBodyDigestGolden(t *testing.T) {
	counting := make([]byte, session.SaltBytes)
	for i := range counting {
		counting[i] = byte(i)
	}
	for _, test := range []struct {
		salt []byte
		body string
		want string
	}{
		{counting, `{"prompt":"hello"}`, "739498c55a4cf4f1cb414d66ca2c574b63bf8f090724d4091dc06033096564ed"},
		{make([]byte, 16), `null`, "7b387a139534b46e62d039ce366c323a909cba42681e56a314669c1624d61934"},
		{slices.Repeat([]byte{255}, 16), `{"content":"ü"}`, "b39f24d04ec1f5c3912611b47b6993c964e10f6392ca4fab7a51b7163643d65e"},
	} {
		got := session.BodyDigest(test.salt, []byte(test.body))
		if hex.EncodeToString(got[:]) != test.want {
			t.Errorf("%s: got %x, want %s", test.body, got, test.want)
		}
	}
}

func TestComputeHashGolden(t *testing.T) {
	for _, test := range []struct {
		name   string
		header session.Header
		want   string
	}{
		{"empty", session.Header{Time: time.Unix(0, 0)},
			"657a254fb01972748ed218560bde8f1952143ebc7d4ed6f6cd655ab8c876c0d7"},
		{"first of a store", session.Header{
			Seq: 1, Session: "01j9zq5v2k7m3n8p4r6t", Time: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC),
			Type: session.TypeSessionStarted, Digest: fill(1),
		}, "08372d60358c12fe69d41fed94a35241752ab87a675d753e355e555d57093c19"},
		{"call", session.Header{
			Seq: 258, Session: "01j9zq5v2k7m3n8p4r6t", Time: time.Date(2026, 3, 1, 13, 0, 1, 0, time.FixedZone("", 3600)),
			Type: session.TypeCallIntended, Turn: 2, Step: 3, Call: "call_7",
			Digest: fill(1), Prev: fill(2), SessionPrev: fill(3),
		}, "ef5ac766afefe9a2b0bfc7c0411204fd8ae424cc753f41b20e4b59fe90ccfcc1"},
		{"at the limits", session.Header{
			Seq: math.MaxUint64, Session: "sü", Time: time.Unix(0, -1), Type: session.TypeMessage,
			Turn: -1, Step: 1 << 31, Call: "\x00", Digest: fill(4), Prev: fill(5), SessionPrev: fill(6),
		}, "480648173200d59d4f99750dbc441ec41535e4cc667e6dd632ec2185bf48494a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, own := range []byte{0, 9} { // the header's own hash is not a part of it
				test.header.Hash = fill(own)
				got := test.header.ComputeHash()
				if hex.EncodeToString(got[:]) != test.want {
					t.Errorf("got %x, want %s", got, test.want)
				}
			}
		})
	}
}

func TestFieldsCannotBeShifted(t *testing.T) {
	at := time.Unix(1, 0)
	seen := map[[32]byte]string{}
	for name, h := range map[string]session.Header{
		"session ab, type c":    {Session: "ab", Type: "c", Time: at},
		"session a, type bc":    {Session: "a", Type: "bc", Time: at},
		"session abc":           {Session: "abc", Time: at},
		"type abc":              {Type: "abc", Time: at},
		"call abc":              {Call: "abc", Time: at},
		"turn 1":                {Session: "abc", Turn: 1, Time: at},
		"step 1":                {Session: "abc", Step: 1, Time: at},
		"prev for session prev": {Prev: fill(1), Time: at},
		"session prev for prev": {SessionPrev: fill(1), Time: at},
		"digest for prev":       {Digest: fill(1), Time: at},
	} {
		hash := h.ComputeHash()
		if other, twice := seen[hash]; twice {
			t.Errorf("%s and %s have one hash", name, other)
		}
		seen[hash] = name
	}
}

func TestSeal(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 3600))
	d := session.Draft{
		Session: "s", Type: session.TypeToolResult, Turn: 1, Step: 2, Call: "c", Body: json.RawMessage(`{"a": 1}`),
	}
	a, b := session.Seal(d, 7, now, fill(1), fill(2)), session.Seal(d, 7, now, fill(1), fill(2))
	want := session.Header{
		Seq: 7, Session: "s", Time: now.UTC(), Type: session.TypeToolResult, Turn: 1, Step: 2, Call: "c",
		Digest: session.BodyDigest(a.Salt, a.Body), Prev: fill(1), SessionPrev: fill(2),
	}
	want.Hash = want.ComputeHash()
	if diff := cmp.Diff(want, a.Header); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if a.Time.Location() != time.UTC {
		t.Errorf("time is in %v", a.Time.Location())
	}
	if string(a.Body) != `{"a": 1}` || len(a.Salt) != session.SaltBytes {
		t.Errorf("body %s, salt of %d bytes", a.Body, len(a.Salt))
	}
	if a.Digest == b.Digest {
		t.Error("equal bodies have equal digests: the salt is not chance")
	}
	for _, empty := range []json.RawMessage{nil, {}} {
		d.Body = empty
		if e := session.Seal(d, 7, now, fill(1), fill(2)); string(e.Body) != "null" || e.Digest != session.BodyDigest(e.Salt, e.Body) {
			t.Errorf("an empty body became %q", e.Body)
		}
	}
}

func TestIDsSortByTime(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var ids []string
	for _, after := range []time.Duration{
		0, time.Millisecond, 31 * time.Millisecond, 32 * time.Millisecond, time.Second, time.Hour,
		24 * time.Hour, 366 * 24 * time.Hour, 100 * 366 * 24 * time.Hour,
	} {
		ids = append(ids, session.NewID(start.Add(after)))
	}
	if !slices.IsSorted(ids) {
		t.Errorf("not in order: %v", ids)
	}
	seen := map[string]bool{}
	for range 1000 {
		id := session.NewID(start)
		if len(id) != 20 || strings.Trim(id, "0123456789abcdefghjkmnpqrstvwxyz") != "" {
			t.Fatalf("id %q", id)
		}
		if id[:10] != ids[0][:10] {
			t.Fatalf("id %q begins unlike %q of the same time", id, ids[0])
		}
		if seen[id] {
			t.Fatalf("id %q comes twice", id)
		}
		seen[id] = true
	}
}

func TestMessage(t *testing.T) {
	body, err := json.Marshal(llm.Message{Kind: llm.Assistant, Content: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		kind session.Type
		body json.RawMessage
		ok   bool
	}{
		{"a message", session.TypeMessage, body, true},
		{"a call", session.TypeToolCall, body, true},
		{"a result", session.TypeToolResult, body, true},
		{"another type", session.TypeTurnStarted, body, false},
		{"a deleted body", session.TypeMessage, nil, false},
		{"another body", session.TypeMessage, json.RawMessage(`[]`), false},
	} {
		m, ok := session.Event{Header: session.Header{Type: test.kind}, Body: test.body}.Message()
		if ok != test.ok || ok && m.Content != "hello" {
			t.Errorf("%s: got %+v, %v", test.name, m, ok)
		}
	}
}
