package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/charset"
	"github.com/stockade-dev/stockade/sdk/go/patch"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

const (
	// maxPatchedBytes limits the size of the new content of all files of a patch together;
	// more is an error. It is all in memory, because no file changes before every hunk fits.
	maxPatchedBytes = 12 << 20
	// maxPatchDiff is the number of bytes of diffs, and that of bytes of output, after which the
	// diffs and previews of further files of a patch are left out.
	maxPatchDiff = 24 << 10
	maxPlaces    = 5 // limits the number of places that an error names if a hunk fits at several
)

type patchArgs struct {
	Patch          string            `json:"patch" desc:"All of the patch, from *** Begin Patch to *** End Patch."`
	Encoding       charset.Encoding  `json:"encoding,omitzero" desc:"Of a file that is no UTF-8, such as gbk."`
	ExpectedSHA256 map[string]string `json:"expected_sha256,omitempty" desc:"SHA-256 of the files that are updated or deleted, by path. Filled in for you."`
}

type patchResult struct {
	Output string            `json:"output"`
	Files  int               `json:"files"`  // number of files in the patch
	Diff   string            `json:"diff"`   // diff of the updated files; a long one is cut
	SHA256 map[string]string `json:"sha256"` // SHA-256 of each added, changed or moved file, by its (new) path in the patch; none of a file that was not read
}

// patchStep is the change of one file of a patch. All steps are prepared before any is made.
type patchStep struct {
	patch.File
	loc, dest location // dest is the file after a move; without a move it is loc
	// outcome is the result, without the field content. A new file has no diff. If the content
	// stays, only the SHA-256 is set; if the file is removed, nothing. A file that was
	// not read has no SHA-256.
	outcome editOutcome
	summary string
}

func applyPatch(ctx context.Context, in patchArgs) (patchResult, error) {
	files, err := patch.Parse(in.Patch)
	if err != nil {
		return patchResult{}, tool.Coded("INVALID_PATCH", tool.InvalidInput("%w", err))
	}
	steps, total := make([]patchStep, len(files)), 0
	named := map[string]*patchStep{} // by real path
	for i, f := range files {
		steps[i].File = f
		if err := steps[i].locate(named); err != nil {
			return patchResult{}, err
		}
	}
	for i := range steps {
		if err := ctx.Err(); err != nil {
			return patchResult{}, err
		}
		s := &steps[i]
		if err := s.prepare(in.ExpectedSHA256[s.Path], in.Encoding); err != nil {
			return patchResult{}, err
		}
		if total += len(s.outcome.file); total > maxPatchedBytes {
			return patchResult{}, tool.Coded("TOO_LARGE", tool.InvalidInput("the files of the patch have more than %s together: make several of it", humanSize(maxPatchedBytes)))
		}
	}
	out := patchResult{Files: len(steps), SHA256: map[string]string{}}
	var text, diffs strings.Builder
	fmt.Fprintf(&text, "Patched %s:", count(len(steps), "file", "files"))
	for i := range steps {
		s := &steps[i]
		if err := s.carryOut(); err != nil {
			return patchResult{}, err
		}
		if s.Op != patch.Delete && s.outcome.sha256 != "" {
			out.SHA256[cmp.Or(s.MoveTo, s.Path)] = s.outcome.sha256
		}
		summary, _, hasPreview := strings.Cut(s.summary, "\n")
		if hasPreview && text.Len() < maxPatchDiff {
			summary = s.summary
		}
		text.WriteString("\n" + summary)
		if diffs.Len() < maxPatchDiff {
			diffs.WriteString(s.outcome.diff)
		} else if s.outcome.diff != "" {
			fmt.Fprintf(&diffs, "[diff cut: %s changes too]\n", s.loc.display())
		}
	}
	out.Output, out.Diff = text.String(), diffs.String()
	return out, nil
}

// locate resolves the paths of the step, and adds their real paths to named. A path that is
// there already, from an earlier step or from this one, is an error.
func (s *patchStep) locate(named map[string]*patchStep) (err error) {
	if s.loc, err = locate(s.Path); err != nil {
		return err
	}
	s.dest = s.loc
	names := []location{s.loc}
	if s.MoveTo != "" {
		if s.dest, err = locate(s.MoveTo); err != nil {
			return err
		}
		names = append(names, s.dest)
	}
	for _, l := range names {
		real := l.real()
		if other := named[real]; other != nil {
			how := "put all that the patch does with a file below one header"
			if s.Op == patch.Delete && other.Op == patch.Add || s.Op == patch.Add && other.Op == patch.Delete {
				how = "to change a file leave out its deletion, and put hunks below *** Update File; file_write replaces all of it"
			}
			return tool.Coded("INVALID_PATCH", tool.InvalidInput("the patch names %s twice, at its lines %d and %d: %s", l.display(), other.Line, s.Line, how))
		}
		named[real] = s
	}
	return nil
}

// prepare computes the new content of the file. It returns an error if the step is impossible.
// hint is the encoding from the call.
func (s *patchStep) prepare(wantHash string, hint charset.Encoding) error {
	if s.Op == patch.Add || s.MoveTo != "" {
		if err := s.dest.checkCreate(cmp.Or(s.MoveTo, s.Path)); err != nil {
			return err
		}
		if _, err := os.Lstat(s.dest.abs); err == nil {
			if _, err := os.Stat(s.dest.abs); errors.Is(err, fs.ErrNotExist) {
				return s.dest.toolError("add", err) // a link to nothing; we do not write through it
			}
			return tool.Coded("FILE_EXISTS", tool.InvalidInput(`%s exists already, and line %d of the patch would make it; "*** Update File: " changes it, file_write replaces it`, s.dest.display(), s.Line))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return s.dest.toolError("add", err)
		}
	}
	switch s.Op {
	case patch.Add:
		if strings.Contains(s.Text, "\x00") {
			return nulError("the new file", s.Text)
		}
		file, err := encode(s.loc, []byte(s.Text), hint)
		if err != nil {
			return err
		}
		s.outcome = editOutcome{file: file, sha256: hashOf(file)}
		s.summary = fmt.Sprintf("Added %s (%s)%s", s.loc.display(), count(lineCount([]byte(s.Text)), "line", "lines"), s.modeWords())
		return nil
	case patch.Delete:
		info, err := os.Lstat(s.loc.abs)
		if err != nil {
			return s.loc.toolError("delete", err)
		}
		if !isFile(info) && info.Mode().Type() != fs.ModeSymlink {
			return s.loc.notAFile("delete", info)
		}
		s.summary = "Deleted " + s.loc.display()
		if wantHash == tool.Unseen {
			return notReadError("the patch deletes %s", s.loc.display())
		}
		if err := checkHashText(wantHash); err != nil {
			return err
		}
		return checkHash(s.loc, info.Size(), wantHash)
	}
	t, err := readForEdit(s.loc, wantHash, hint)
	switch {
	case err != nil && tool.AsError(err).Code == tool.CodeNotFound:
		return tool.NotFound(`%w; "*** Add File: " makes a new one`, err)
	case err != nil:
		return err
	}
	s.summary = "Updated " + s.loc.display()
	if s.MoveTo != "" {
		s.summary = fmt.Sprintf("Moved %s to %s", s.loc.display(), s.dest.display())
	}
	s.summary += s.modeWords()
	if s.outcome.sha256 = t.sha256; len(s.Hunks) == 0 && t.unseen {
		return notReadError("the patch shows no text of %s", s.loc.display())
	} else if len(s.Hunks) == 0 {
		return nil
	}
	changes, note, err := t.placeHunks(s.Hunks)
	if err != nil {
		return err
	}
	if s.outcome, err = t.edit(changes); err != nil {
		return err
	}
	s.summary += fmt.Sprintf(", which has %s now%s:\n%s", count(lineCount(s.outcome.content), "line", "lines"), note, preview(t.content, s.outcome.content, changes))
	s.outcome.content = nil // saves memory: outcome.file is all that carryOut needs
	return nil
}

// modeWords describes the change of the file's mode, for the end of a summary; empty: none.
func (s *patchStep) modeWords() string {
	return map[string]string{patch.Executable: ", executable now", patch.Plain: ", not executable now"}[s.Mode]
}

func (s *patchStep) carryOut() error {
	var err error
	switch {
	case s.Op == patch.Add:
		err = create(s.loc, s.outcome.file)
	case s.Op == patch.Delete:
		err = os.Remove(s.loc.abs)
	case s.MoveTo != "":
		// The file itself moves, with its mode.
		if err = os.MkdirAll(filepath.Dir(s.dest.abs), 0o777); err == nil {
			err = os.Rename(s.loc.abs, s.dest.abs)
		}
	}
	if err == nil && s.Op == patch.Update && len(s.Hunks) > 0 {
		err = overwrite(s.dest, s.outcome.file)
	}
	if err == nil && s.Mode != "" && s.Op != patch.Delete {
		// In WebAssembly this has no effect: the host sets the modes of a patch.
		err = os.Chmod(s.dest.abs, map[string]fs.FileMode{patch.Executable: 0o755, patch.Plain: 0o644}[s.Mode])
	}
	if err != nil {
		return s.dest.toolError("patch", err)
	}
	return nil
}

// placeHunks returns the changes that hunks make. A hunk fits where all its old lines are, after
// the hunk before it and its anchors: exactly or, if that is nowhere, with other white space at
// the ends of lines, which note mentions if there is one such place. If it fits at several
// places, the line number of a unified diff has to choose one, or, for exact ones, an anchor: then
// the first is taken. A place that is only similar is never chosen. A hunk without old lines is
// appended to an empty file, or to another one if it says so; else it is an error.
func (t *textFile) placeHunks(hunks []patch.Hunk) (changes []change, note string, err error) {
	pos := 0
	for i, h := range hunks {
		where := fmt.Sprintf("hunk %d of %s (line %d of the patch)", i+1, t.loc.display(), h.Line)
		from, sure, err := t.anchor(h, pos, where)
		if err != nil {
			return nil, "", err
		}
		old := h.Old()
		if t.unseen && (len(old) == 0 || len(t.find(0, old, lineIs, false)) > 1) {
			return nil, "", notReadError("the lines of %s are not there exactly and once", where)
		}
		if len(old) == 0 {
			if !h.End && len(t.content) > 0 {
				return nil, "", tool.Coded("INVALID_PATCH", tool.InvalidInput("%s only adds lines and does not say where: give the line above them as context, or *** End of File behind them to append", where))
			}
			from = len(t.content)
			changes, pos = append(changes, t.changesOf(h, from)...), from
			continue
		}
		found := t.find(from, old, lineIs, h.End)
		if len(found) == 0 && !t.unseen {
			if found = t.find(from, old, equalButTrailingSpace, h.End); len(found) == 1 {
				note += fmt.Sprintf(" (in hunk %d white space at the ends of lines was ignored)", i+1)
			}
			sure = false // several such places are an error, even with an anchor
		}
		if len(found) > 1 && h.At > 0 {
			if i := slices.IndexFunc(found, func(at int) bool { return t.lineAt(at) == h.At }); i >= 0 {
				found = found[i : i+1]
			}
		}
		switch {
		case len(found) == 0:
			return nil, "", tool.Coded("NO_MATCH", tool.InvalidInput("%s does not fit: its lines are not in the file from line %d on%s; nothing was changed", where, t.lineAt(from), t.explainNoMatch(h, old, from)))
		case len(found) > 1 && !sure:
			return nil, "", tool.Coded("NOT_UNIQUE", tool.InvalidInput("%s fits at several places, at lines %s: add lines of context, or above it @@ and a line that is there once and stands above the place",
				where, t.linesAt(found)))
		}
		changes = append(changes, t.changesOf(h, found[0])...)
		pos = offsetAfterLines(t.content, found[0], len(old))
	}
	return changes, note, nil
}

// anchor returns the offset from which to search for a hunk: after its anchors. The first
// is searched from the offset from on, each other one after the one before. sure reports
// whether there is a first and it occurs only once. where is the hunk's name in errors.
func (t *textFile) anchor(h patch.Hunk, from int, where string) (_ int, sure bool, err error) {
	for i, anchor := range h.Anchors {
		found := t.find(from, []string{anchor}, lineIsTrimmed, false)
		if len(found) == 0 {
			return 0, false, tool.Coded("NO_MATCH", tool.InvalidInput("%s: the line %q behind @@ is not in the file from line %d on%s; nothing was changed",
				where, anchor, t.lineAt(from), nearMiss(t.content, "the patch", []string{anchor})))
		}
		sure = sure || i == 0 && len(found) == 1
		from = offsetAfterLines(t.content, found[0], 1)
	}
	return from, sure, nil
}

// These functions compare a line of the file with a line of a patch.
func lineIs(have []byte, want string) bool { return string(have) == want }
func equalButTrailingSpace(have []byte, want string) bool {
	return string(bytes.TrimRight(have, " \t\r")) == strings.TrimRight(want, " \t\r")
}
func lineIsTrimmed(have []byte, want string) bool { return string(bytes.TrimSpace(have)) == want }

// find returns the offsets from which all lines match by is, at most maxPlaces + 1, none
// before from. With atEnd, the lines must be the last ones of the file.
func (t *textFile) find(from int, lines []string, is func(have []byte, want string) bool, atEnd bool) (found []int) {
	for at := from; at < len(t.content) && len(found) <= maxPlaces; at = offsetAfterLines(t.content, at, 1) {
		pos, all := at, true
		for _, want := range lines {
			next := offsetAfterLines(t.content, pos, 1)
			if all = pos < len(t.content) && is(trimEnding(t.content[pos:next]), want); !all {
				break
			}
			pos = next
		}
		if all && (!atEnd || pos == len(t.content)) {
			found = append(found, at)
		}
	}
	return found
}

// changesOf returns the changes of a hunk whose lines begin at the offset at. Lines of context
// stay as they are in the file.
func (t *textFile) changesOf(h patch.Hunk, at int) (changes []change) {
	var added strings.Builder
	start, open := at, false
	flush := func() {
		if open {
			text, last := added.String(), at == len(t.content)
			if last && at > 0 && t.content[at-1] != '\n' && !h.NoOldEnd {
				text = strings.TrimSuffix(text, "\n") // the file ends as it did
			}
			c := t.putLines(start, at, text)
			if last && h.NoNewEnd {
				c.text = strings.TrimSuffix(c.text, t.eol)
			}
			changes = append(changes, c)
		}
		added.Reset()
		open = false
	}
	for _, line := range h.Lines {
		if line[0] == ' ' {
			flush()
			at = offsetAfterLines(t.content, at, 1)
			continue
		}
		if !open {
			start, open = at, true
		}
		if line[0] == '+' {
			added.WriteString(line[1:] + "\n")
		} else {
			at = offsetAfterLines(t.content, at, 1)
		}
	}
	flush()
	return changes
}

// explainNoMatch returns the end of an error: the probable reason why the hunk with the lines
// old does not fit after from.
func (t *textFile) explainNoMatch(h patch.Hunk, old []string, from int) string {
	var added []string
	for _, line := range h.Lines {
		if line[0] != '-' {
			added = append(added, line[1:])
		}
	}
	if h.End {
		if found := t.find(from, old, lineIs, false); len(found) > 0 {
			return fmt.Sprintf("; they are at line %s, and the patch says that the file ends with them", t.linesAt(found))
		}
	}
	if found := t.find(0, old, lineIs, h.End); len(found) > 0 {
		return fmt.Sprintf("; they are at line %s: hunks stand in the order of the file, and below their @@", t.linesAt(found))
	}
	if found := t.find(0, added, lineIs, false); len(found) > 0 && len(added) > 0 {
		return fmt.Sprintf("; at line %s the file has the new lines already", t.linesAt(found))
	}
	return nearMiss(t.content, "the hunk", old)
}

func (t *textFile) lineAt(offset int) int { return 1 + countLines(t.content[:offset]) }

// linesAt returns the numbers of the lines at some offsets as a text, such as "3, 17". It ends
// with "..." after maxPlaces numbers, if there are more.
func (t *textFile) linesAt(offsets []int) string {
	var out []string
	for i, at := range offsets {
		if i == maxPlaces {
			out = append(out, "...")
			break
		}
		out = append(out, fmt.Sprint(t.lineAt(at)))
	}
	return strings.Join(out, ", ")
}
