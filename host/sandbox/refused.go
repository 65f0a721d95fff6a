package sandbox

import (
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/tool"
)

// maxRefusals limits the refusals that a result explains; the others are counted.
const maxRefusals = 3

// addRefusals explains the refusals of special paths in a result: the guest got only an error
// number for them. A success gets a note. A failure becomes one with tool.CodeDenied, if gaveUp
// reports that it is the guest's own; a failure with another cause stays as it is.
func addRefusals(r tool.Result, gaveUp bool, refused []wasi.Refusal) tool.Result {
	if len(refused) == 0 {
		return r
	}
	if r.Err == nil {
		r.AddNote(refusals(refused))
		return r
	}
	if !gaveUp {
		return r // its failure has another cause
	}
	failed := *r.Err
	failed.Code, failed.Type = tool.CodeDenied, tool.PermissionDenied
	failed.Message += "; " + refusals(refused)
	failed.Hint = tool.Advise("do not try again in another way; say what you wanted to do and let the person decide")
	r.Err = &failed
	return r
}

func refusals(refused []wasi.Refusal) string {
	var parts []string
	secrets := 0
	for _, f := range refused {
		if f.Special.Care == paths.Secret {
			secrets++
		}
		if len(parts) < maxRefusals {
			parts = append(parts, f.Special.RefusalText(f.Path))
		}
	}
	text := strings.Join(parts, "; ")
	if more := len(refused) - len(parts); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	if secrets > 1 {
		text = fmt.Sprintf("%d files that look like secrets were not read: ", secrets) + text
	}
	return text
}
