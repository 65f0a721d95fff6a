package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/agent"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/visible"
)

// finalAnswer is the answer of a turn, for --output-schema and -o.
type finalAnswer struct {
	form *agent.AnswerForm // nil: the answer is any text
	text string            // the answer so far, without the texts of steps before
	dir  *os.Root          // directory of the file for the answer, as it was before the turn; nil: no file
	name string            // name of the file in dir
}

// maxAnswerSchema limits the file of --output-schema, in bytes: each request holds it.
const maxAnswerSchema = 64 << 10

func addAnswerFlags(cmd *cobra.Command, a *app) {
	cmd.Flags().StringVar(&a.flags.schema, "output-schema", "", "the answer is a JSON object that fits the JSON Schema in this file; stdout gets nothing else")
	cmd.Flags().StringVarP(&a.flags.output, "output", "o", "", "write the answer to this file, too; a turn without an answer leaves it as it is")
}

// newFinalAnswer returns the final answer that the flags ask for.
func (a *app) newFinalAnswer() (out finalAnswer, err error) {
	if a.flags.schema != "" {
		f, err := os.Open(a.flags.schema)
		if err != nil {
			return out, usageError("it names a file with a JSON Schema", "--output-schema: %v", err)
		}
		defer f.Close()
		schema, err := io.ReadAll(io.LimitReader(f, maxAnswerSchema+1))
		if err == nil && len(schema) > maxAnswerSchema {
			err = fmt.Errorf("it has more than %d bytes", maxAnswerSchema)
		}
		form := &agent.AnswerForm{Schema: schema}
		if err == nil {
			form.Compiled, err = tool.CompileSchema(schema)
		}
		if err != nil {
			return out, usageError("a schema of an object, of draft 7 or 2020-12", "--output-schema %s: the schema %v", a.flags.schema, err)
		}
		out.form = form
	}
	if a.flags.output != "" {
		out.name = filepath.Base(a.flags.output)
		if out.dir, err = os.OpenRoot(filepath.Dir(a.flags.output)); err == nil {
			a.onClose(out.dir.Close)
			if st, statErr := out.dir.Lstat(out.name); statErr == nil && !st.Mode().IsRegular() {
				err = errors.New("something else than a file is there")
			}
		}
		if err != nil {
			return out, usageError("it names a file, in a directory that is there", "-o %s: %v", a.flags.output, err)
		}
	}
	return out, nil
}

// note takes the answer from the events of a turn.
func (f *finalAnswer) note(e session.Event) {
	switch m, _ := e.Message(); {
	case e.Type == session.TypeTurnStarted, e.Type == session.TypeToolCall, e.Type == session.TypeMessage && m.Kind == llm.User:
		f.text = ""
	case e.Type == session.TypeMessage && m.Kind == llm.Assistant:
		f.text = strings.TrimLeft(f.text+"\n\n"+m.Content, "\n")
	}
}

// harmless returns the answer for a pipe or a file, with a line feed at its end.
func (f *finalAnswer) harmless() string {
	if f.form != nil {
		return string(visible.EscapeJSON(json.RawMessage(f.text))) + "\n"
	}
	return strings.TrimRight(terminal.EscapeControls(f.text), "\n") + "\n"
}

// write puts the answer in the place of the file, or of a link that was made there during the
// turn. The file keeps its permissions.
func (f *finalAnswer) write() error {
	if f.dir == nil {
		return nil
	}
	mode := fs.FileMode(0o666)
	if st, err := f.dir.Lstat(f.name); err == nil && st.Mode().IsRegular() {
		mode = st.Mode().Perm()
	}
	temp := ".stockade-" + rand.Text() + ".tmp"
	now, err := os.Stat(f.dir.Name())
	if was, statErr := f.dir.Stat("."); err == nil && (statErr != nil || !os.SameFile(now, was)) {
		err = errors.New("its directory was removed, and may be gone in a moment")
	}
	var file *os.File
	if err == nil {
		file, err = f.dir.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	}
	if err == nil {
		_, err = file.WriteString(f.harmless())
		if err = errors.Join(err, file.Close()); err == nil {
			err = f.dir.Rename(temp, f.name)
		}
		if err != nil {
			err = errors.Join(err, f.dir.Remove(temp))
		}
	}
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}
