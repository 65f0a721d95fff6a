package dispatch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/sdk/go/filename"
)

// What the log has of the changes of one call.
const (
	maxListed  = 10_000                // changes
	maxSummary = 20                    // lines about them
	maxHashed  = session.MaxImageBytes // bytes of a file whose content is hashed
	maxAll     = 1 << 30               // bytes that are hashed of all files

	maxShown      = 50        // changes of which it has the diff, and what a file was like afterwards
	maxShownBytes = 256 << 10 // of all diffs
	maxAfter      = 1 << 20   // bytes of a file that it has as it was afterwards
	maxAfterAll   = 4 << 20   // and of all of them
)

// account is what the log says of the changes of one call, while it is written.
type account struct {
	p      *pending
	images [][]byte
	total  int // bytes of them

	left      int64 // of maxAll
	many      bool  // what was there before is too much to be kept
	shown     int
	diffBytes int
	after     int64 // of maxAfterAll
}

// changes is what the log says of what is about to be changed, and the contents by
// which it can be undone. It fails if that is not possible any more.
func (p *pending) changes(ctx context.Context, changes []tool.Change, dirs ...*git.Dir) (session.Changes, [][]byte, error) {
	changes = diff.Moves(ctx, changes)
	body := session.Changes{Tool: p.call.Tool, More: max(len(changes)-maxListed, 0)}
	if lines := diff.Summary(ctx, changes, p.call.Cwd, maxSummary, dirs...); len(lines) < len(changes) {
		body.Summary = lines
	}
	listed := changes[:min(len(changes), maxListed)]
	a := account{p: p, left: maxAll, after: maxAfterAll, many: tooMuchBefore(listed)}
	for _, change := range listed {
		if err := ctx.Err(); err != nil {
			return body, nil, err
		}
		entry, err := a.entry(change)
		if err != nil {
			return body, nil, err
		}
		body.Files = append(body.Files, entry)
	}
	return body, a.images, nil
}

// tooMuchBefore reports whether what was there before has more bytes than are kept of
// one call. A part of it could undo nothing: a call is undone as a whole.
func tooMuchBefore(changes []tool.Change) bool {
	var sum int64
	for _, c := range changes {
		if loses(c) && c.Before.Size <= session.MaxImageBytes && !looksSecret(c) {
			sum += c.Before.Size
		}
	}
	return sum > session.MaxImagesBytes-maxAfterAll
}

// loses reports whether a content is not there any more after a change, or may not be.
func loses(c tool.Change) bool {
	return c.Before != nil && c.Before.Mode.IsRegular() && (c.Kind == tool.Modified || c.Kind == tool.Removed || c.Kind == tool.Renamed)
}

// looksSecret reports whether the content of a file is nobody's to keep.
func looksSecret(c tool.Change) bool {
	for _, name := range []string{c.Path, c.From} {
		if _, secret := paths.Read(paths.Guest(name)); name != "" && secret {
			return true
		}
	}
	return false
}

// target is where a link leads.
func target(v *tool.Version) string {
	if v == nil {
		return ""
	}
	return v.Target
}

// entry is one change, as the log has it.
func (a *account) entry(c tool.Change) (session.Change, error) {
	out := session.Change{Path: filename.UTF8(c.Path), From: filename.UTF8(c.From), Kind: c.Kind} // JSON has UTF-8 only
	secret := looksSecret(c)
	// The log would have another name, and it would be put back under that.
	named := a.p.d.opts.Redact.Finds([]byte(c.Path + "\n" + c.From + "\n" + target(c.Before)))
	shown := !secret && a.shown < maxShown && c.Kind != tool.Times && !strings.Contains(c.Path, "/.git/")
	if shown {
		a.shown++
		if a.diffBytes < maxShownBytes {
			out.Diff, out.Added, out.Removed = diff.Of(c, a.p.call.Cwd, a.p.d.opts.Redact.Finds)
			a.diffBytes += len(out.Diff)
		}
	}
	lost := loses(c)
	switch {
	case named, lost && secret:
		out.NoImage = session.NoImageSecret
	case lost && a.many:
		out.NoImage = session.NoImageMany
	}
	before, content, why, err := a.version(c.Before, lost && out.NoImage == "")
	if err != nil { // the host's file is another one by now
		return out, fmt.Errorf("%s: %w: %w", c.Path, policy.ErrChanged, err)
	}
	out.Before, out.NoImage = before, cmp.Or(out.NoImage, why)
	a.keep(content)

	wanted := shown && c.After != nil && c.Kind != tool.ModeChanged && c.After.Size <= min(maxAfter, a.after)
	if out.After, content, _, err = a.version(c.After, wanted); err != nil {
		return out, fmt.Errorf("%s: %w", c.Path, err)
	}
	a.after -= int64(len(content))
	a.keep(content)
	return out, nil
}

func (a *account) keep(content []byte) {
	if content != nil {
		a.images = append(a.images, content)
		a.total += len(content)
	}
}

// version is a version as the log has it, hashed if it is small and there is room for
// that. If its content is wanted that is returned, or why it is not kept.
func (a *account) version(v *tool.Version, wanted bool) (out *session.Version, content []byte, why session.NoImage, err error) {
	if v == nil {
		return nil, nil, "", nil
	}
	out = &session.Version{Bytes: v.Size, Mode: v.Mode.String(), Target: v.Target, Twin: v.Twin}
	var sum [sha256.Size]byte
	switch {
	case !v.Mode.IsRegular():
		return out, nil, "", nil
	case v.Size > maxHashed:
		why = session.NoImageLarge
	case v.Size > a.left:
		why = session.NoImageMany
	default:
		a.left -= v.Size
		sum, content, err = read(v, wanted)
		switch {
		case errors.Is(err, fs.ErrPermission): // a mode may keep its owner from reading it
			why = session.NoImageUnreadable
		case err != nil:
			return nil, nil, "", err
		default:
			out.SHA256 = fmt.Sprintf("%x", sum)
		}
	}
	switch {
	case why != "":
	case a.p.d.opts.Redact.Finds(content):
		why = session.NoImageSecret
	case a.total+len(content) > session.MaxImagesBytes: // it is longer than was said
		why = session.NoImageMany
	}
	switch {
	case !wanted:
		return out, nil, "", nil
	case why != "":
		return out, nil, why, nil
	}
	return out, content, "", nil
}

// read hashes a content, and returns it if it is wanted.
func read(v *tool.Version, wanted bool) (sum [sha256.Size]byte, content []byte, err error) {
	if !wanted {
		sum, err = v.SHA256()
		return sum, nil, err
	}
	r, err := v.Open()
	if err != nil {
		return sum, nil, err
	}
	var b bytes.Buffer
	b.Grow(int(v.Size) + bytes.MinRead)
	_, err = b.ReadFrom(io.LimitReader(r, maxHashed+1))
	if err = errors.Join(err, r.Close()); err == nil && b.Len() > maxHashed {
		err = fmt.Errorf("it has more than the %d bytes that it had", v.Size)
	}
	content = b.Bytes()
	return sha256.Sum256(content), content, err
}
