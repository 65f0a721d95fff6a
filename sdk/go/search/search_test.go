//go:build !wasip1

package search

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

// host makes this package behave as if it had a host.
func host(t *testing.T) {
	t.Helper()
	hosted = true
	t.Cleanup(func() {
		hosted = false
		if n := abi.Live(); n != 0 {
			t.Errorf("%d blocks left", n)
		}
	})
}

func TestListLiftsWhatTheHostLists(t *testing.T) {
	host(t)
	var asked string
	hostList = func(ptr, size, ret uint32) {
		asked = string(abi.Take(ptr, size))
		r, f := abi.Record(abi.Take(ret, 16)), new(abi.Frame)
		ptr, list := f.Area(60)
		list.SetCase(0, 1)
		list.SetPair(4)(f.Text("a\x00b\x00c\x00d\x00"))
		list.SetPair(12)(f.Bytes([]byte{0, 1, 2, 3}))
		list.SetCase(40, 1) // empty; there is none between
		r.SetU32(4, ptr)
		r.SetU32(8, 3)
	}
	got, err := List("/d", "/e", "/f", "/g")
	if err != nil || asked != "/d\x00/e\x00/f\x00/g\x00" {
		t.Errorf("asked for %q, %v", asked, err)
	}
	want := []Listing{{{"a", 0}, {"b", fs.ModeDir}, {"c", fs.ModeSymlink}, {"d", fs.ModeIrregular}}, nil, {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listings (-want +got):\n%s", diff)
	}
}

func TestStatLiftsWhatTheHostSays(t *testing.T) {
	host(t)
	var asked string
	hostStat = func(ptr, size, ret uint32) {
		asked = string(abi.Take(ptr, size))
		r, f := abi.Record(abi.Take(ret, 16)), new(abi.Frame)
		ptr, list := f.Area(80)
		list.SetCase(40, 1)
		list.SetU64(48, 1<<33)
		list.SetU64(56, ^uint64(0))
		list.SetU64(64, 7)
		list.SetCase(72, 2)
		r.SetU32(4, ptr)
		r.SetU32(8, 2)
	}
	got, err := Stat("/d", "/e")
	if err != nil || asked != "/d\x00/e\x00" {
		t.Errorf("asked for %q, %v", asked, err)
	}
	if diff := cmp.Diff([]*Info{nil, {fs.ModeSymlink, 1 << 33, -1, 7}}, got); diff != "" {
		t.Errorf("infos (-want +got):\n%s", diff)
	}
}

func TestLinesLowersAndLifts(t *testing.T) {
	host(t)
	var got Query
	hostBegin = func(filesPtr, filesLen, patternPtr, patternLen, context, maxMatches, maxText, maxChars, ret uint32) {
		got = Query{
			Files: []string{string(abi.Take(filesPtr, filesLen))}, Pattern: string(abi.Take(patternPtr, patternLen)),
			Context: int(context), MaxMatches: int(maxMatches), MaxText: int(maxText), MaxChars: int(maxChars),
		}
	}
	hostCollect = func(ret uint32) {
		r, f := abi.Record(abi.Take(ret, 28)), new(abi.Frame)
		ptr, list := f.Area(48)
		list.SetU64(0, 1<<33)
		list.SetU32(8, 1)
		list.SetU32(12, 2)
		list.SetCase(16, 1)
		list.SetU64(24, 7)
		list.SetU32(36, 1)
		list.SetCase(41, 1)
		r.SetU32(4, ptr)
		r.SetU32(8, 2)
		r.SetPair(12)(f.Text("abc"))
		r.SetU32(20, 5)
		r.SetCase(24, 1)
	}
	found, err := Lines(Query{Files: []string{"/a", "/b"}, Pattern: "p", Context: 1, MaxMatches: 2, MaxText: 3, MaxChars: -1})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Query{Files: []string{"/a\x00/b\x00"}, Pattern: "p", Context: 1, MaxMatches: 2, MaxText: 3}, got); diff != "" {
		t.Errorf("host got (-want +got):\n%s", diff)
	}
	if _, err := Lines(Query{Files: []string{"/a"}, Names: []byte("/b\x00/c\x00")}); err != nil || got.Files[0] != "/a\x00/b\x00/c\x00" {
		t.Errorf("host got %q, %v", got.Files, err)
	}
	want := Found{Lines: []Line{{File: 1, Number: 1 << 33, Text: "ab", Matches: true}, {Number: 7, Text: "c", Cut: true}}, Failed: 5, More: true}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

func TestErrors(t *testing.T) {
	if _, err := Lines(Query{}); !errors.Is(err, ErrUnavailable) || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without a host: %v", err)
	}
	if _, err := List("/"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without a host: %v", err)
	}
	if _, err := Stat("/"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without a host: %v", err)
	}
	host(t)
	for i, want := range []error{ErrDenied, ErrInvalid} {
		refuse := func(r abi.Record) {
			r.SetCase(0, 1)
			r.SetCase(4, uint8(i))
			r.SetPair(8)(new(abi.Frame).Text("because"))
		}
		hostList = func(_, _, ret uint32) { refuse(abi.Take(ret, 16)) }
		hostBegin = func(_, _, _, _, _, _, _, _, ret uint32) { refuse(abi.Take(ret, 16)) }
		hostCollect = func(ret uint32) { refuse(abi.Take(ret, 28)) }
		hostStat = hostList
		if _, err := Stat("/"); !errors.Is(err, want) {
			t.Errorf("case %d of stat is %v", i, err)
		}
		_, err := List("/")
		_, also := Lines(Query{})
		_, last := Collect()
		if !errors.Is(err, want) || !errors.Is(also, want) || !errors.Is(last, want) || err.Error() != want.Error()+": because" {
			t.Errorf("case %d is %v and %v", i, err, also)
		}
	}
}
