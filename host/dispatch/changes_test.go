package dispatch

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

func text(content string) *tool.Version {
	return &tool.Version{Size: int64(len(content)), Mode: 0o644, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}
}

// The log gets the right record of each change, and the store the right contents.
func TestWhatIsKeptOfAChange(t *testing.T) {
	const secret = "s3cr3t-of-the-vault"
	before, after := text("one\ntwo\n"), text("one\n2\n3\n")
	large := text(strings.Repeat("x", session.MaxPreimageBytes+1))
	half := text(strings.Repeat("x", session.MaxPreimageBytes))
	unreadable := &tool.Version{Size: 3, Mode: 0, Open: func() (io.ReadCloser, error) { return nil, fs.ErrPermission }}
	type kept struct {
		Diff   string // "" none, "+" some
		Lines  [2]int
		No     session.NoPreimage
		Images []string
	}
	for name, c := range map[string]struct {
		changes []tool.Change
		want    kept // of the first
	}{
		"a text":                   {[]tool.Change{{Path: "/work/a", Kind: tool.Modified, Before: before, After: after}}, kept{"+", [2]int{2, 1}, "", []string{"one\ntwo\n", "one\n2\n3\n"}}},
		"a new text":               {[]tool.Change{{Path: "/work/a", Kind: tool.Created, After: after}}, kept{"+", [2]int{3, 0}, "", []string{"one\n2\n3\n"}}},
		"one that is gone":         {[]tool.Change{{Path: "/work/a", Kind: tool.Removed, Before: before}}, kept{"+", [2]int{0, 2}, "", []string{"one\ntwo\n"}}},
		"no text":                  {[]tool.Change{{Path: "/work/a", Kind: tool.Modified, Before: text("\x00"), After: after}}, kept{"", [2]int{}, "", []string{"\x00", "one\n2\n3\n"}}},
		"a mode":                   {[]tool.Change{{Path: "/work/a", Kind: tool.ModeChanged, Before: before, After: before}}, kept{}},
		"a time":                   {[]tool.Change{{Path: "/work/a", Kind: tool.TimesChanged, Before: before, After: before}}, kept{}},
		"what looks like a secret": {[]tool.Change{{Path: "/work/.env", Kind: tool.Modified, Before: before, After: after}}, kept{No: session.NoPreimageSecret}},
		"what looked like one":     {[]tool.Change{{Path: "/work/a", From: "/work/.env", Kind: tool.Renamed, Before: before, After: after}}, kept{No: session.NoPreimageSecret}},
		"what holds a secret": {[]tool.Change{{Path: "/work/a", Kind: tool.Modified, Before: text("key " + secret), After: after}},
			kept{"", [2]int{3, 1}, session.NoPreimageSecret, []string{"one\n2\n3\n"}}},
		"what gets one": {[]tool.Change{{Path: "/work/a", Kind: tool.Modified, Before: before, After: text("key " + secret)}},
			kept{"", [2]int{1, 2}, "", []string{"one\ntwo\n"}}},
		"a name that has a secret": {[]tool.Change{{Path: "/work/" + secret, Kind: tool.Removed, Before: before}}, kept{"+", [2]int{0, 2}, session.NoPreimageSecret, nil}},
		"a link with a secret":     {[]tool.Change{{Path: "/work/a", Kind: tool.Removed, Before: &tool.Version{Mode: fs.ModeSymlink, Target: secret}}}, kept{No: session.NoPreimageSecret}},
		"what is too large":        {[]tool.Change{{Path: "/work/a", Kind: tool.Removed, Before: large}}, kept{No: session.NoPreimageLarge}},
		"what nobody may read":     {[]tool.Change{{Path: "/work/a", Kind: tool.Removed, Before: unreadable}}, kept{No: session.NoPreimageUnreadable}},
		"one of too many": {[]tool.Change{{Path: "/work/a", Kind: tool.Removed, Before: before}, {Path: "/work/b", Kind: tool.Removed, Before: half}, {Path: "/work/c", Kind: tool.Removed, Before: half},
			{Path: "/work/d", Kind: tool.Removed, Before: half}, {Path: "/work/e", Kind: tool.Removed, Before: half}}, kept{"+", [2]int{0, 2}, session.NoPreimageMany, nil}},
		"in the directory of git": {[]tool.Change{{Path: "/work/.git/index", Kind: tool.Modified, Before: before, After: after}}, kept{Images: []string{"one\ntwo\n"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policy.Options{})
			w.options.Redact = new(redact.Redactor)
			w.options.Redact.Add(secret)
			p := &pending{d: New(w.options), call: aCall("file_write", `{}`)}
			body, images, err := p.describeChanges(t.Context(), c.changes)
			if err != nil {
				t.Fatal(err)
			}
			f := body.Files[0]
			got := kept{Lines: [2]int{f.Added, f.Removed}, No: f.NoPreimage}
			if f.Diff != "" {
				got.Diff = "+"
			}
			for _, img := range images {
				got.Images = append(got.Images, string(img))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			// Each image is one that the log speaks of.
			for _, img := range images {
				sum := fmt.Sprintf("%x", sha256.Sum256(img))
				if (f.Before == nil || f.Before.SHA256 != sum) && (f.After == nil || f.After.SHA256 != sum) {
					t.Errorf("%.20q is kept, and the log does not know it", img)
				}
			}
		})
	}
}

// If a call changes very much, the log has only some diffs, and the store the lost contents.
func TestWhatIsKeptOfManyChanges(t *testing.T) {
	w := newWorld(t, policy.Options{})
	p := &pending{d: New(w.options), call: aCall("file_write", `{}`)}
	var changes []tool.Change
	for i := range 1000 {
		content := strings.Repeat(fmt.Sprintln("line", i), 5000)
		changes = append(changes, tool.Change{Path: fmt.Sprintf("/work/%04d", i), Kind: tool.Modified, Before: text(content), After: text("new " + content)})
	}
	body, images, err := p.describeChanges(t.Context(), changes)
	if err != nil {
		t.Fatal(err)
	}
	diffs, bytes := 0, 0
	for _, f := range body.Files {
		if f.Diff != "" {
			diffs++
		}
		bytes += len(f.Diff)
		if f.NoPreimage != "" {
			t.Fatalf("%s: %s", f.Path, f.NoPreimage)
		}
	}
	if len(body.Files) != 1000 || diffs == 0 || diffs > maxDiffs || bytes > maxDiffBytes+64<<10 || len(images) < 1000 || len(images) > 1000+maxDiffs {
		t.Errorf("%d files, %d diffs of %d bytes, %d images", len(body.Files), diffs, bytes, len(images))
	}
}

// Recording fails for a file that is replaced meanwhile.
func TestAFileThatChangesWhileItIsRecorded(t *testing.T) {
	w := newWorld(t, policy.Options{})
	p := &pending{d: New(w.options), call: aCall("file_write", `{}`)}
	gone := text("x")
	gone.Open = func() (io.ReadCloser, error) { return nil, errDisk }
	_, _, err := p.describeChanges(t.Context(), []tool.Change{{Path: "/work/a", Kind: tool.Removed, Before: gone}})
	if !errors.Is(err, policy.ErrChanged) {
		t.Errorf("got %v", err)
	}
	endless := &tool.Version{Size: 3, Mode: 0o644, Open: func() (io.ReadCloser, error) { return io.NopCloser(zeros{}), nil }}
	if _, _, err := p.describeChanges(t.Context(), []tool.Change{{Path: "/work/a", Kind: tool.Removed, Before: endless}}); err == nil {
		t.Error("an endless file is recorded")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte{0}, len(p))), nil }
