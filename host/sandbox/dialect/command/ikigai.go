package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/host/sandbox/dialect"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// Describe implements [dialect.Dialect]: it runs the command with --schema.
func (Dialect) Describe(ctx context.Context, g *dialect.Guest, name string, m *wasm.Module) ([]byte, []string, error) {
	g.Limits.OutputBytes = tool.MaxManifestBytes
	out, err := run(ctx, g, preview1.Process{Args: []string{name, "--schema"}})
	why := ""
	switch {
	case err != nil:
		return nil, nil, undescribed(err, "run with --schema it did not end well")
	case out.code != 0:
		why = fmt.Sprintf("run with --schema it exited with code %d", out.code)
	case out.stdout.truncated || out.stdout.buf.Len() > tool.MaxManifestBytes:
		why = fmt.Sprintf("run with --schema it printed more than %d KiB", tool.MaxManifestBytes>>10)
	}
	if why != "" {
		return nil, nil, undescribed(nil, why)
	}
	spec, err := parseSchema(out.stdout.buf.Bytes())
	if err != nil {
		return nil, nil, undescribed(nil, "what it prints when it is run with --schema "+err.Error())
	}
	spec.Capabilities = dialect.InferCapabilities(m)
	return tool.Marshal(tool.Manifest{ABI: tool.ABICommand, Name: name, Tools: []tool.Spec{spec}, Inferred: true}), nil, nil
}

func undescribed(err error, why string) error {
	return &dialect.UndescribedError{Err: err, Why: "it is a command that does not say what it does: " + why +
		"; describe it in a few lines and add it with stockade tool add FILE --describe FILE.toml, as stockade help plugins shows"}
}

func parseSchema(text []byte) (spec tool.Spec, _ error) {
	if trimmed := strings.TrimSpace(string(text)); !strings.HasPrefix(trimmed, "{") {
		return spec, fmt.Errorf(`is no JSON object with "name", "description" and "parameters", but %+.100q`, trimmed)
	}
	if err := tool.CheckJSON(text); err != nil {
		return spec, err
	}
	var schema struct {
		Name, Description string
		Parameters        map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		return spec, fmt.Errorf("is not valid: %w", err)
	}
	switch {
	case !tool.ValidName(schema.Name):
		return spec, fmt.Errorf("has the name %.80q, which is not 1 to 64 letters, digits, '_' or '-'", schema.Name)
	case schema.Description == "":
		return spec, errors.New("has no description")
	}
	var err error
	spec.Name, spec.Description = schema.Name, schema.Description
	if spec.Parameters, err = tool.FlatSchema(schema.Parameters); err != nil {
		return spec, fmt.Errorf("is not valid: %w", err)
	}
	return spec, nil
}
