package tool

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stockade-dev/stockade/sdk/go/patch"
)

// Content connects a tool with the content of files, so that a model edits only content that
// it has seen. Such a tool returns, in the field "sha256" of its result, the SHA-256 in hex of
// the file after the call, except of a file that is too large. For a patch the field is an
// object with the SHA-256 of each file that still exists, by its new path in the patch.
type Content struct {
	Path string `json:"path,omitempty"` // name of the argument with the path of the file
	// Patch is the name of the argument with a patch in the form of package patch; the tool
	// has no Path then. Rules match the paths in the patch as the argument [PatchPath].
	Patch string `json:"patch,omitempty"`
	// Hash is the name of the argument with the SHA-256 of the content that the conversation
	// saw last. In a model's call without it, the host fills it in, or refuses the call if the
	// content was not seen. For a patch the argument is an object with the SHA-256 of each
	// existing file, by its path. Empty: the tool only reads files, or writes whole files.
	Hash string `json:"hash,omitempty"`
	// Lines is set if the tool has the argument [LineStart], and maybe [LineEnd], with numbers
	// of lines. The model counts lines in the content that it saw before the call. If an
	// earlier call of the same step has changed the file since, the host adapts the numbers by
	// the field "replaced" in the result of that call, see [LineEdit]. Without the field it
	// refuses the call.
	Lines bool `json:"lines,omitempty"`
	// Exact is set if the tool finds what it changes by its text, and knows the hash [Unseen].
	Exact bool `json:"exact,omitempty"`
}

// Unseen stands in the place of a hash for a file that the conversation has not seen. The tool
// then changes only text that is in the file exactly and once, or fails; and it reports no hash
// of that file, because the conversation has not seen the rest.
const Unseen = "unseen"

// Names of the arguments with numbers of lines, from 1 on. Without LineEnd the operation takes
// place in front of line LineStart.
const (
	LineStart = "line_start"
	LineEnd   = "line_end"
)

// LineEdit is the effect of an edit on the lines of a file: {First, Old, New}. From line First
// on, counted from 1, Old lines were replaced by New lines.
type LineEdit [3]int

// Valid reports whether r is not nil, and its numbers are possible for a file.
func (r *LineEdit) Valid() bool {
	const limit = 1 << 30
	return r != nil && r[0] > 0 && r[1] >= 0 && r[2] >= 0 && max(r[0], r[1], r[2]) < limit
}

// ShiftLines converts line numbers from before the edit to those after the edit. from and to
// are the first and the last line of a range. If to is nil, from is the line in front of which
// something is inserted. It returns false if the edit replaced or divided the lines.
func (r LineEdit) ShiftLines(from, to *int) bool {
	first, end := r[0], r[0]+r[1] // the replaced lines, without end
	switch {
	case *from >= end:
		*from += r[2] - r[1]
		if to != nil {
			*to += r[2] - r[1]
		}
		return true
	case to == nil:
		return *from <= first
	}
	return *to < first
}

// PatchPath is the name of the argument by which decisions and rules match each path in a
// patch.
const PatchPath = "path"

// Unsent returns the names of the fields of a result that the model is not sent, because the
// host itself puts their values into the next call; nil for a tool without Hash. For an edit by
// line number and for a patch this includes the diff, because their output shows the new lines.
func (c *Content) Unsent() []string {
	switch {
	case c == nil || c.Hash == "":
		return nil
	case c.Lines || c.Patch != "":
		return []string{"sha256", "replaced", "diff"}
	}
	return []string{"sha256"}
}

// Argument returns the name of the argument by which decisions match the files; empty if c is
// nil.
func (c *Content) Argument() string {
	switch {
	case c == nil:
		return ""
	case c.Patch != "":
		return PatchPath
	}
	return c.Path
}

// Files returns the paths in the arguments of a call. existing are the files whose content the
// tool reads or changes; a tool without a patch may also make its file. made are the files that
// a patch makes. If the arguments name no files, or the patch is malformed, it returns an
// error; the caller lets the tool report the fault. c must not be nil.
func (c *Content) Files(args json.RawMessage) (existing, made []string, err error) {
	text, err := stringArgument(args, c.Path+c.Patch)
	if err != nil {
		return nil, nil, err
	}
	if c.Patch == "" {
		return []string{text}, nil, nil
	}
	files, err := patch.Parse(text)
	for _, f := range files {
		if f.Op == patch.Add {
			made = append(made, f.Path)
			continue
		}
		existing = append(existing, f.Path)
		if f.MoveTo != "" {
			made = append(made, f.MoveTo)
		}
	}
	return existing, made, err
}

// stringArgument returns the value of an argument, which must be a string and not empty.
func stringArgument(args json.RawMessage, name string) (text string, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(args, &all); err != nil {
		return "", err
	}
	if err := json.Unmarshal(all[name], &text); err != nil || text == "" {
		return "", fmt.Errorf("the argument %.80q is no text", name)
	}
	return text, nil
}

// Encoding returns the encoding that a call gives for files that are not UTF-8; empty if it
// gives none, or c is nil. The question about the changes shows text in this encoding.
func (c *Content) Encoding(args json.RawMessage) (name string) {
	if c != nil {
		name, _ = stringArgument(args, "encoding")
	}
	return name
}

// Modes returns the files to which a patch gives a mode. The key is the path of the file after
// the patch; the value is true if the file becomes executable. The host sets the modes after
// the tool has ended, because WASI has none. The map is nil for a tool without a patch.
func (c *Content) Modes(args json.RawMessage) map[string]bool {
	if c == nil || c.Patch == "" {
		return nil
	}
	text, _ := stringArgument(args, c.Patch)
	files, _ := patch.Parse(text)
	modes := map[string]bool{}
	for _, f := range files {
		if f.Mode != "" && f.Op != patch.Delete {
			modes[cmp.Or(f.MoveTo, f.Path)] = f.Mode == patch.Executable
		}
	}
	return modes
}

// check returns an error for arguments that are no parameters of the right type, and for
// fields that exclude each other. c may be nil.
func (c *Content) check(s *Schema) error {
	switch {
	case c == nil:
		return nil
	case (c.Path == "") == (c.Patch == ""):
		return errors.New("content names either path or patch")
	case !s.IsString(c.Path + c.Patch):
		return fmt.Errorf("content names the argument %.80q, which must be a string in parameters", c.Path+c.Patch)
	case c.Hash != "" && c.Path != "" && !s.IsString(c.Hash), c.Hash != "" && c.Patch != "" && !s.HasProperty(c.Hash):
		return fmt.Errorf("content names the argument %.80q for the hash; it must be in parameters, and with path a string", c.Hash)
	case (c.Lines || c.Exact) && c.Hash == "":
		return errors.New("content has lines without hash, or exact")
	case c.Lines && c.Exact:
		return errors.New("content has both lines and exact")
	}
	return nil
}
