package tool

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stockade-dev/stockade/sdk/go/patch"
)

// Content ties a tool to the content of files, so that a model changes only what it
// has seen. The result of such a tool tells, in its field "sha256", the SHA-256 in
// hex of the file after the call; of a patch, an object with that of each file, by
// the path as the patch has it, without those that are gone.
type Content struct {
	// Path is the argument that names the file.
	Path string `json:"path,omitempty"`
	// Patch is, in place of Path, the argument that holds a patch in the form of
	// package patch, which names the files. To rules their paths are the argument
	// [PatchPath].
	Patch string `json:"patch,omitempty"`
	// Hash is the argument in which the tool wants the SHA-256 of the content
	// as this conversation saw it last; empty for a tool that only reports. Of a patch
	// it is an object: the SHA-256 of each file that is there, by its path.
	Hash string `json:"hash,omitempty"`
	// Lines says that the arguments [LineStart] and, if there is one, [LineEnd] are
	// numbers of lines. They mean the content that the model had been shown when it
	// made the call, and not what another call of the same step has made of it: the
	// host translates them by what the results of those calls say in their field
	// "replaced", see [LineEdit], and refuses the call where that does not tell.
	Lines bool `json:"lines,omitempty"`
}

// The arguments that are numbers of lines, counted from 1. Without LineEnd, LineStart is
// the line in front of which something is done.
const (
	LineStart = "line_start"
	LineEnd   = "line_end"
)

// LineEdit says what an edit has done to the lines of a file: Old lines from First on,
// counted from 1, are New lines now. As JSON it is [First, Old, New].
type LineEdit [3]int

// Valid reports whether there is one, of numbers that a file can have.
func (r *LineEdit) Valid() bool {
	const most = 1 << 30
	return r != nil && r[0] > 0 && r[1] >= 0 && r[2] >= 0 && max(r[0], r[1], r[2]) < most
}

// ShiftLines makes numbers of lines from before the edit those of after it: lines from, up to
// and with to, or without to the place in front of from. It reports whether they are
// still there: not if the edit was about some of them, or between them.
func (r LineEdit) ShiftLines(from, to *int) bool {
	first, behind := r[0], r[0]+r[1] // of what was there
	switch {
	case *from >= behind:
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

// PatchPath is the argument as which decisions and rules know the files that a patch
// names, each a value of it.
const PatchPath = "path"

// Unsent are the fields of a result that the host reads in the place of the model: what
// it fills in itself with the next call. Of an edit by number and a patch it is also the
// diff, since their outputs show the lines that there are now.
func (c *Content) Unsent() []string {
	switch {
	case c == nil || c.Hash == "":
		return nil
	case c.Lines || c.Patch != "":
		return []string{"sha256", "replaced", "diff"}
	}
	return []string{"sha256"}
}

// Argument is the argument as which decisions know the files; of no content, empty.
func (c *Content) Argument() string {
	switch {
	case c == nil:
		return ""
	case c.Patch != "":
		return PatchPath
	}
	return c.Path
}

// Files are the paths that the arguments of a call name: of files whose content the
// tool looks at or changes, and of those that a patch makes. It fails where the
// arguments do not tell, and the tool has something to say about them.
func (c *Content) Files(args json.RawMessage) (there, made []string, err error) {
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
		there = append(there, f.Path)
		if f.MoveTo != "" {
			made = append(made, f.MoveTo)
		}
	}
	return there, made, err
}

// stringArgument returns the value of an argument that must be a text.
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

// Encoding returns the name of the encoding that a call gives for files that are no UTF-8; empty:
// it gives none. The question about the changes shows text in this encoding.
func (c *Content) Encoding(args json.RawMessage) (name string) {
	if c != nil {
		name, _ = stringArgument(args, "encoding")
	}
	return name
}

// Modes returns the paths to which a patch gives a mode, and whether each becomes executable. The
// host sets the modes after the tool has ended, because WASI has none.
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

func (c *Content) check(s *Schema) error {
	switch {
	case c == nil:
		return nil
	case (c.Path == "") == (c.Patch == ""):
		return errors.New("content names either path or patch")
	case !s.IsString(c.Path + c.Patch):
		return fmt.Errorf("content names the argument %.80q, which must be a string of parameters", c.Path+c.Patch)
	case c.Hash != "" && c.Path != "" && !s.IsString(c.Hash), c.Hash != "" && c.Patch != "" && !s.HasProperty(c.Hash):
		return fmt.Errorf("content names the argument %.80q for the hash, which must be a string of parameters, and of a patch an object", c.Hash)
	case c.Lines && c.Hash == "":
		return errors.New("content has lines without hash")
	}
	return nil
}
