package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// loadConfig reads agent.toml of the user and of the workspace, then the
// environment, then the flags. Where the command may ask, a person is asked about
// a workspace's file that wants more than it may.
func (a *app) loadConfig(ctx context.Context) error {
	if err := a.dirs.outside(a.work); err != nil {
		return err
	}
	// What a user's file may set, a project's may not: who could have written it
	// matters there.
	own := func(path string) (*config.File, error) {
		data, err := policyfile.Own(path).Bytes()
		if err != nil {
			return nil, err
		}
		return config.Parse(path, config.User, data)
	}
	load := func(path string, read func(string) (*config.File, error)) (*config.File, error) {
		f, err := read(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, &exitErr{code: exitUsage, message: err.Error(), hint: "mend the file, or move it away"}
		}
		return f, nil
	}
	user, err := load(a.dirs.agentTOML(), own)
	if err != nil {
		return err
	}
	project, err := load(projectFile(a.work), func(path string) (*config.File, error) { return config.Load(path, config.Project) })
	if err != nil {
		return err
	}
	cfg, warnings, err := config.Merge(user, project, a.s.env)
	if err != nil {
		return &exitErr{code: exitUsage, message: err.Error()}
	}
	if len(project.Asks()) > 0 {
		if project.Trusted, err = a.trusts(ctx, project); err != nil {
			return err
		}
		if project.Trusted {
			if cfg, warnings, err = config.Merge(user, project, a.s.env); err != nil {
				return &exitErr{code: exitUsage, message: err.Error()}
			}
		}
	}
	a.waiting = nil
	for _, w := range warnings {
		if w.Untrusted {
			a.waiting = append(a.waiting, w)
		}
		if !w.Untrusted || a.trust != trustLeave {
			a.s.note("warning: %s", w)
		}
	}
	if base := a.s.env("OPENAI_BASE_URL"); base != "" && cfg.Source("model.base_url") == "default" {
		if err := cfg.Set("model.base_url", base, "environment OPENAI_BASE_URL"); err != nil {
			return usageError("", "OPENAI_BASE_URL: %v", err)
		}
	}
	for _, f := range []struct{ flag, key, value string }{
		{"--provider", "model.provider", a.flags.provider},
		{"--model", "model.name", a.flags.model},
		{"--max-turns", "max_tool_turns", a.flags.maxTurns},
	} {
		if f.value == "" {
			continue
		}
		if err := cfg.Set(f.key, f.value, "flag "+f.flag); err != nil {
			return usageError("", "%s %q: %v", f.flag, f.value, err)
		}
	}
	a.cfg = cfg
	return a.loadLayers()
}

// projectFile is the configuration that comes with a workspace.
func projectFile(work string) string { return filepath.Join(work, "agent.toml") }

// remembered makes rules of the answers that were kept.
func (a *app) remembered() ([]policy.Rule, error) {
	answers, err := a.readAnswers()
	if err != nil {
		return nil, err
	}
	var rules []policy.Rule
	for _, ans := range answers {
		r, err := answerRule(ans)
		if err != nil {
			return nil, &exitErr{code: exitUsage, message: fmt.Sprintf("%s: %v", a.dirs.remembered(), err), hint: "mend the file, or remove it to be asked again"}
		}
		r.Origin = a.dirs.remembered() + ": " + ans.ID()
		rules = append(rules, r)
	}
	return rules, nil
}

// unknownDigest is none: an answer that does not say what it was given for is
// asked for again.
const unknownDigest = "unknown"

func answerRule(ans config.Answer) (policy.Rule, error) {
	r, err := policy.ParseRule(ans.Rule)
	if err != nil {
		return r, err
	}
	r.Project, r.Source = ans.Project, policy.SourceUser
	r.Bound = policy.Binding{
		Module: ans.Module, ABI: ans.ABI, Capabilities: cmp.Or(ans.Capabilities, unknownDigest),
		Description: cmp.Or(ans.Description, unknownDigest), Schema: cmp.Or(ans.Schema, unknownDigest),
		Said: policy.Said(ans.Said),
	}
	if ans.Module == string(tool.OriginBuiltin) {
		r.Bound.ABI = cmp.Or(ans.ABI, unknownDigest)
	}
	return r, nil
}

// remember keeps an answer "always" or "project", beside those that nobody else
// could have written.
func (a *app) remember(r policy.Rule) error {
	if a.known.Text(r.String()) != r.String() {
		return errors.New("the rule holds a secret, which is not written to a file")
	}
	if _, err := a.readAnswers(); err != nil {
		return err
	}
	return config.AddAnswer(a.dirs.remembered(), config.Answer{
		Rule: r.String(), Project: r.Project, Added: time.Now().UTC().Truncate(time.Second),
		Module: r.Bound.Module, ABI: r.Bound.ABI,
		Description: r.Bound.Description, Schema: r.Bound.Schema, Capabilities: r.Bound.Capabilities,
		Said: config.Said(r.Bound.Said),
	})
}
