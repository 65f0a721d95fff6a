package sandbox

import (
	"context"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/tool"
)

// The stages, for the benchmarks.

func Admit(mod *tool.Module) error {
	_, err := admit(mod)
	return err
}

func Load(s *Sandbox, mod *tool.Module) error {
	_, err := s.load(context.Background(), mod)
	return err
}

func InstantiateOnce(ctx context.Context, s *Sandbox, mod *tool.Module) error {
	c, err := s.load(ctx, mod)
	if err != nil {
		return err
	}
	inst, err := s.instantiate(ctx, c, policy.Grant{}, policy.DefaultLimits())
	if err != nil {
		return err
	}
	inst.close()
	return nil
}

// WASIFunctions lists the functions that a guest can import, by module and name.
func WASIFunctions() map[string]abi.Signature { return wasiFunctions() }

// CompiledModules is how many modules the sandbox holds.
func CompiledModules(s *Sandbox) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.compiled)
}
