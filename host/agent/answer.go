package agent

import (
	"context"
	"encoding/json"

	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// AnswerForm makes the answer of a turn a JSON object that fits a schema. The model is told, and
// may call tools before. An answer that does not fit leads to one new try without tools, in which
// the provider keeps the model to the schema if it can. The second time, the turn ends with the
// limit [OutputSchema], and the reason in its error.
type AnswerForm struct {
	Schema   json.RawMessage
	Compiled *tool.Schema // the same schema
}

// OutputSchema is the name of briefs about the form of the answer, and of the limit that ends a
// turn whose answer does not have it.
const OutputSchema = "output_schema"

// checkForm ends the turn if its answer has the form of Options.Answer. Otherwise it asks the model
// once more.
func (t *turn) checkForm(ctx context.Context, answer string) error {
	err := t.a.opts.Answer.Compiled.Validate(ctx, json.RawMessage(answer))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return t.askAgain(ctx, OutputSchema, err.Error(), "[Your answer does not fit the JSON Schema: "+err.Error()+". Answer again, with the JSON object alone.]")
	}
	t.end.Reason = session.EndAnswered
	return nil
}
