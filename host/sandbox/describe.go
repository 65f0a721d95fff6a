package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/sandbox/dialect"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// describeTimeout limits the time in which an unknown module has to return its manifest; then
// the module is refused.
const describeTimeout = time.Second

// interpretedTimeout is the describeTimeout of the interpreter, which is twenty times slower.
// It runs only modules that authors build, on machines that may be busy.
const interpretedTimeout = 20 * time.Second

// Describe returns a module's manifest. The custom section is read without running anything.
// If there is none, the module is asked as its dialect does it, with nothing mounted, no host
// function and one second (with the interpreter twenty). Describe needs no grant because the
// module gets nothing.
func (s *Sandbox) Describe(ctx context.Context, mod *tool.Module) (tool.Manifest, error) {
	a, err := s.admit(ctx, mod)
	if err != nil {
		return tool.Manifest{}, err
	}
	var notes []string
	check := sectionManifest
	text, ok := wasm.CustomSection(a.Decoded, wasm.ManifestSection)
	if !ok {
		if text, notes, err = s.runDescribe(ctx, mod, a); err != nil {
			return tool.Manifest{}, err
		}
		check = checkManifest
	}
	m, err := check(mod, a, text)
	if m.Notes = notes; len(a.Missing) > 0 {
		m.Notes = append(m.Notes, "it imports functions of WASI that are not supported: "+strings.Join(names(a.Missing), ", "))
	}
	return m, err
}

// AskManifest asks a module for its manifest, without a look at the custom section. It returns
// the manifest unchecked, for the packer, which puts it there.
func (s *Sandbox) AskManifest(ctx context.Context, mod *tool.Module) ([]byte, error) {
	a, err := s.admit(ctx, mod)
	if err != nil {
		return nil, err
	}
	text, _, err := s.runDescribe(ctx, mod, a)
	return text, err
}

// runDescribe runs the functions with which a module of its dialect describes itself. It
// returns the manifest, as JSON, and notes of the host about it.
func (s *Sandbox) runDescribe(ctx context.Context, mod *tool.Module, a *admit.Module) (text []byte, notes []string, err error) {
	c, err := s.load(ctx, mod)
	if err != nil {
		return nil, nil, err
	}
	outer := ctx
	timeout := describeTimeout
	if s.opts.Interpreter {
		timeout = interpretedTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	inst, err := s.open(ctx, c, policy.Grant{}, policy.DefaultLimits(), nil)
	defer inst.close()
	if err == nil {
		text, notes, err = c.dialect.Describe(inst.context(ctx), s.guest(inst, c, nil), tool.NameOf(mod.Name), a.Decoded)
	}
	var hostErr *hostError
	var undescribed *dialect.UndescribedError
	fault, broken := errors.AsType[*abi.Fault](err)
	switch {
	case err == nil:
	case outer.Err() != nil:
		return nil, nil, context.Cause(outer)
	case errors.As(err, &hostErr), errors.Is(err, hostmod.ErrPanic):
		return nil, nil, fmt.Errorf("ask %s for its manifest: %w", mod.Name, err)
	case errors.As(err, &undescribed):
		return nil, nil, &admit.UndescribedError{RefusedError: admit.Refuse(mod, "%v", undescribed)}
	case ctx.Err() != nil, endedByDeadline(err):
		return nil, nil, admit.Refuse(mod, "its describe function did not end within %s", timeout)
	case broken:
		return nil, nil, admit.Refuse(mod, "%v", fault)
	default:
		return nil, nil, admit.Refuse(mod, "its describe function failed: %s", firstLine(err.Error()))
	}
	return text, notes, nil
}

func names(missing []preview1.MissingFunction) (out []string) {
	for _, f := range missing {
		out = append(out, f.Name)
	}
	return out
}

// sectionManifest checks text, the manifest in a custom section, like checkManifest. It also
// refuses a manifest that says that it is inferred.
func sectionManifest(mod *tool.Module, a *admit.Module, text []byte) (tool.Manifest, error) {
	m, err := checkManifest(mod, a, text)
	if err == nil && m.Inferred {
		err = admit.Refuse(mod, "its manifest says that it is inferred, which only the host does")
	}
	return m, err
}

// checkManifest parses a manifest and checks it against the code. Packing and adding a module,
// and calls by its path, do so through [Sandbox.Describe].
func checkManifest(mod *tool.Module, a *admit.Module, text []byte) (tool.Manifest, error) {
	m, err := tool.ParseManifest(text)
	if err != nil {
		return m, admit.Refuse(mod, "%v", err)
	}
	d := dialects[a.Kind]
	if len(m.Notes) > 0 {
		return m, admit.Refuse(mod, "its manifest holds notes, which are the host's own")
	}
	if m.ABI != d.ABI() {
		return m, admit.Refuse(mod, "its manifest is for the ABI %.80q; it is a module of %q", m.ABI, d.ABI())
	}
	if err := d.CheckManifest(m, a.Decoded); err != nil {
		return m, admit.Refuse(mod, "%v", err)
	}
	return m, nil
}
