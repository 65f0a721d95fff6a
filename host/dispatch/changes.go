package dispatch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
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

// Limits for the record of the changes of one call in the log.
const (
	maxListed      = 10_000                   // changes in the record; further ones are only counted
	maxSummary     = 20                       // lines that sum up the changes, about
	maxHashed      = session.MaxPreimageBytes // bytes of a file; a larger one is not hashed
	maxHashedTotal = 1 << 30                  // bytes of all hashed files; a file beyond it is not hashed

	maxDiffs      = 50        // changes recorded with a diff and the content after the change
	maxDiffBytes  = 256 << 10 // bytes of all diffs, after which no further diff is made
	maxAfterBytes = 1 << 20   // bytes of a content after a change; a larger one is not stored
	maxAfterTotal = 4 << 20   // bytes of all contents after changes; one beyond it is not stored
)

// changeRecorder builds the record of the changes of one call, within the limits above.
type changeRecorder struct {
	p      *pending
	images [][]byte // contents for the store, in the order of the record
	total  int      // bytes of images

	hashBudget    int64 // bytes that may still be hashed, of maxHashedTotal
	tooMuchBefore bool  // set if the contents before the changes are together too large to be stored
	shown         int   // number of changes so far that count for maxDiffs, even if they got no diff
	diffBytes     int   // bytes of all diffs so far
	afterBudget   int64 // bytes that may still be stored of contents after changes
}

// describeChanges returns the record of the changes that are about to be made, and contents
// for the store: those before the changes, which can undo them, if they may be stored, and some
// of those after. It fails if ctx ends, or if files have changed since the call ran or cannot
// be read, except for lack of permission. dirs are results of git.Check, for the summary.
func (p *pending) describeChanges(ctx context.Context, changes []tool.Change, dirs ...*git.Dir) (session.Changes, [][]byte, error) {
	changes = diff.DetectRenames(ctx, changes)
	body := session.Changes{Tool: p.call.Tool, More: max(len(changes)-maxListed, 0)}
	if lines := diff.Summary(ctx, changes, p.call.Cwd, maxSummary, dirs...); len(lines) < len(changes) {
		body.Summary = lines
	}
	listed := changes[:min(len(changes), maxListed)]
	a := changeRecorder{p: p, hashBudget: maxHashedTotal, afterBudget: maxAfterTotal, tooMuchBefore: tooMuchBefore(listed)}
	for _, change := range listed {
		if err := ctx.Err(); err != nil {
			return body, nil, err
		}
		entry, err := a.record(change)
		if err != nil {
			return body, nil, err
		}
		body.Files = append(body.Files, entry)
	}
	return body, a.images, nil
}

// tooMuchBefore reports whether the contents before the changes are larger than the store
// keeps for one call. Then none is kept: a call is undone as a whole, or not at all.
func tooMuchBefore(changes []tool.Change) bool {
	var sum int64
	for _, c := range changes {
		if losesContent(c) && c.Before.Size <= session.MaxPreimageBytes && !looksSecret(c) {
			sum += c.Before.Size
		}
	}
	return sum > session.MaxPreimagesBytes-maxAfterTotal
}

// losesContent reports whether a change may destroy the content that a file had before.
func losesContent(c tool.Change) bool {
	return c.Before != nil && c.Before.Mode.IsRegular() && (c.Kind == tool.Modified || c.Kind == tool.Removed || c.Kind == tool.Renamed)
}

// looksSecret reports whether the content of a changed file must not be stored, because
// its name looks like that of a secret.
func looksSecret(c tool.Change) bool {
	for _, name := range []string{c.Path, c.From} {
		if _, secret := paths.SpecialForRead(paths.Guest(name)); name != "" && secret {
			return true
		}
	}
	return false
}

// record returns the record of one change, and adds the contents before and after to the
// images. Its error is that somebody else has changed the file, or that a content cannot be
// read.
func (a *changeRecorder) record(c tool.Change) (session.Change, error) {
	out := session.Change{Path: filename.UTF8(c.Path), From: filename.UTF8(c.From), Kind: c.Kind} // JSON has UTF-8 only
	secret := looksSecret(c)
	// A redacted log would hold another name, and undo would put the file back under it.
	named := a.p.d.opts.Redact.Finds([]byte(c.Path + "\n" + c.From + "\n" + cmp.Or(c.Before, &tool.Version{}).Target))
	shown := !secret && a.shown < maxDiffs && c.Kind != tool.TimesChanged && !strings.Contains(c.Path, "/.git/")
	if shown {
		a.shown++
		if a.diffBytes < maxDiffBytes {
			out.Diff, out.Added, out.Removed = diff.Unified(c, a.p.call.Cwd, a.p.d.opts.Redact.Finds)
			a.diffBytes += len(out.Diff)
		}
	}
	lost := losesContent(c)
	switch {
	case named, lost && secret:
		out.NoPreimage = session.NoPreimageSecret
	case lost && a.tooMuchBefore:
		out.NoPreimage = session.NoPreimageMany
	}
	before, content, why, err := a.version(c.Before, lost && out.NoPreimage == "")
	if err != nil { // somebody has replaced the host's file
		return out, fmt.Errorf("%s: %w: %w", c.Path, policy.ErrChanged, err)
	}
	out.Before, out.NoPreimage = before, cmp.Or(out.NoPreimage, why)
	a.addImage(content)

	wanted := shown && c.After != nil && c.Kind != tool.ModeChanged && c.After.Size <= min(maxAfterBytes, a.afterBudget)
	if out.After, content, _, err = a.version(c.After, wanted); err != nil {
		return out, fmt.Errorf("%s: %w", c.Path, err)
	}
	a.afterBudget -= int64(len(content))
	a.addImage(content)
	return out, nil
}

func (a *changeRecorder) addImage(content []byte) {
	if content != nil {
		a.images = append(a.images, content)
		a.total += len(content)
	}
}

// version returns the record of a version; nil if v is nil. It hashes the content if the
// limits allow it. If the content of a regular file is wanted, version returns it, or the reason
// why it is not stored.
func (a *changeRecorder) version(v *tool.Version, wanted bool) (out *session.Version, content []byte, why session.NoPreimage, err error) {
	if v == nil {
		return nil, nil, "", nil
	}
	out = &session.Version{Bytes: v.Size, Mode: v.Mode.String(), Target: v.Target, HardLink: v.HardLink}
	var sum [sha256.Size]byte
	switch {
	case !v.Mode.IsRegular():
		return out, nil, "", nil
	case v.Size > maxHashed:
		why = session.NoPreimageLarge
	case v.Size > a.hashBudget:
		why = session.NoPreimageMany
	default:
		a.hashBudget -= v.Size
		if !wanted {
			sum, err = v.SHA256()
		} else if content, err = v.Content(maxHashed); err == nil {
			sum = sha256.Sum256(content)
		}
		switch {
		case errors.Is(err, fs.ErrPermission): // a mode may keep its owner from reading it
			why = session.NoPreimageUnreadable
		case err != nil:
			return nil, nil, "", err
		default:
			out.SHA256 = fmt.Sprintf("%x", sum)
		}
	}
	switch {
	case why != "":
	case a.p.d.opts.Redact.Finds(content):
		why = session.NoPreimageSecret
	case a.total+len(content) > session.MaxPreimagesBytes: // it is longer than v.Size
		why = session.NoPreimageMany
	}
	switch {
	case !wanted:
		return out, nil, "", nil
	case why != "":
		return out, nil, why, nil
	}
	return out, content, "", nil
}
