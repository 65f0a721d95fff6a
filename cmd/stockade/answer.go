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
		out.form = &agent.AnswerForm{}
		f, err := os.Open(a.flags.schema)
		if err == nil {
			defer f.Close()
			out.form.Schema, err = io.ReadAll(io.LimitReader(f, maxAnswerSchema+1))
		}
		if err == nil && len(out.form.Schema) > maxAnswerSchema {
			err = fmt.Errorf("%s has more than %d bytes", a.flags.schema, maxAnswerSchema)
		}
		if err == nil {
			if out.form.Compiled, err = tool.CompileSchema(out.form.Schema); err != nil {
				err = fmt.Errorf("%s: the schema %w", a.flags.schema, err)
			}
		}
		if err != nil {
			return out, usageError("it names a file with the schema of an object, of draft 7 or 2020-12", "--output-schema: %v", err)
		}
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
		err = errors.New("another directory has the place of the one that was there")
	}
	if err == nil {
		err = f.dir.WriteFile(temp, []byte(f.harmless()), mode)
	}
	if err == nil {
		err = f.dir.Rename(temp, f.name)
	}
	if err != nil {
		_ = f.dir.Remove(temp)
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}
