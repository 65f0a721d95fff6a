// Package settings finds, reads and merges the settings of a person, a project and an
// administrator, for one run in one workspace.
//
// Settings come from the user's agent.toml, then the workspace's, then the environment,
// then flags; later ones win. Some keys count in a workspace's file only if a person
// trusts exactly its content ([Trust]). The layers of the policy are the settings, the
// administrator, the user, the project, the environment and flags. What all of them permit is
// the ceiling, and settings are lowered to it. An [Answer] is an answer that a person gave
// for good; it is a rule in the next run. The program stores its own files in folders
// ([Dirs]) that no guest sees and that no variable may put into the workspace.
//
//	s, err := settings.Load(ctx, settings.Options{Env: os.Getenv, Workspace: dir, Ask: ask, Warn: warn})
//
// A fault in any of them is an [Error]: settings that cannot be read must not count as
// missing.
package settings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/policy"
)

// Options holds the sources of settings. Env and Workspace are required.
type Options struct {
	Env       func(string) string
	Workspace string   // absolute, without symbolic links
	Flags     []Flag   // settings that win over files and variables; a flag without a value is ignored
	Deny      []string // rules of --deny
	// Ask asks a person whether to trust a workspace's file with keys that need trust. was is
	// the trust in an earlier content, or the zero Trust. Nil: nobody can be asked, and these
	// keys count only with an earlier yes.
	Ask func(ctx context.Context, f *config.File, was Trust) (bool, error)
	// Warn receives warnings for the person. hint is the remedy and may be empty. Nil:
	// warnings are dropped.
	Warn             func(text, hint string)
	SkipTrustWarning bool // drops the warnings about keys that wait for trust
	// Administrator is the place of the administrator's policy. A user of the program cannot
	// set it. The zero Place stands for the system's.
	Administrator policyfile.Place
	// AccountHome returns the home directory of the user's account, or "". Nil: the function
	// [AccountHome].
	AccountHome func() string
}

// Flag is a setting of the command line.
type Flag struct{ Name, Key, Value string }

// Settings holds the merged settings of a run. Copies share their maps and slices.
type Settings struct {
	Config            config.Config    // the merged settings, lowered to Ceiling
	UntrustedWarnings []config.Warning // warnings about keys of the workspace's file that wait for trust
	Layers            []policy.Layer
	Ceiling           policy.Ceiling // the ceiling of all layers
	Dirs              Dirs
	Workspace         string
	Warn              func(text, hint string) // receives warnings, as in Options
}

// Error is a fault in the settings, or the reason not to believe them, with a remedy.
type Error struct {
	What string // the fault, in words
	Hint string // the remedy; may be empty
}

func (e *Error) Error() string { return e.What }

func mistake(hint, format string, args ...any) error {
	return &Error{fmt.Sprintf(format, args...), hint}
}

// Load reads and merges all settings. A fault in them is an *[Error]. The error is a
// *[NoPlaceError] if there is no place for the program's folders.
func Load(ctx context.Context, o Options) (*Settings, error) {
	s := &Settings{Workspace: o.Workspace, Warn: o.Warn}
	var err error
	if s.Dirs, err = FindDirs(o.Env); err != nil {
		return nil, err
	}
	if err := s.Dirs.checkOutside(o.Workspace, o.AccountHome); err != nil {
		return nil, err
	}
	user, err := orNone(loadOwn(s.Dirs.AgentTOML()))
	if err != nil {
		return nil, err
	}
	project, err := orNone(config.Load(ProjectFile(o.Workspace), config.Project))
	if err != nil {
		return nil, err
	}
	if err := s.merge(ctx, o, user, project); err != nil {
		return nil, err
	}
	for _, f := range o.Flags {
		if f.Value == "" {
			continue
		}
		if err := s.setFlag(f); err != nil {
			return nil, err
		}
	}
	if err := s.setServerAddress(o.Env); err != nil {
		return nil, err
	}
	if err := s.Config.Check(); err != nil {
		return nil, mistake("", "%v", err)
	}
	s.warnUnused()
	return s, s.loadLayers(o)
}

// warnUnused warns of variables about [model] that have no effect, because a file selects
// another profile.
func (s *Settings) warnUnused() {
	profile, from := s.Config.Profile, s.Config.Source("profile")
	if profile == "" || profile == config.ModelProfile || strings.HasPrefix(from, "flag ") || strings.HasPrefix(from, "environment ") {
		return
	}
	for _, key := range []string{"model.provider", "model.name", "model.base_url"} {
		if variable, ok := strings.CutPrefix(s.Config.Source(key), "environment "); ok && strings.HasPrefix(variable, "STOCKADE_") {
			s.warn("STOCKADE_PROFILE="+config.ModelProfile+" makes [model] answer", "%s is not used: the profile %s answers (%s)", variable, profile, from)
		}
	}
}

// setFlag applies a flag. A model changes the model of the selected profile. A provider
// unselects the profile, since a profile has its own provider.
func (s *Settings) setFlag(f Flag) error {
	profile, source := s.Config.Profile, "flag "+f.Name
	switch {
	case f.Key == "model.provider" && strings.HasPrefix(s.Config.Source("profile"), "flag "):
		return mistake("leave out one of them", "a profile has its own provider, and %s names another", f.Name)
	case f.Key == "model.provider" && profile != "":
		if err := s.Config.Set("profile", "", source); err != nil {
			return err
		}
	case f.Key == "model.name" && s.Config.Profiles[profile].Provider != "":
		f.Key = config.ProfileKey(profile, "model")
	}
	if err := s.Config.Set(f.Key, f.Value, source); err != nil {
		return mistake("", "%s %q: %v", f.Name, f.Value, err)
	}
	return nil
}

// loadOwn is [config.Load] for the user's file. It fails if anybody but the user could have
// written the file, which may set more than a project's.
func loadOwn(path string) (*config.File, error) {
	data, err := policyfile.User(path).Bytes()
	if err != nil {
		return nil, err
	}
	return config.Parse(path, config.User, data)
}

// orNone turns a missing file into the zero value, and another error into an *Error.
func orNone[T any](file T, err error) (T, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return *new(T), nil
	}
	if err != nil {
		return *new(T), mistake("mend the file, or move it away", "%v", err)
	}
	return file, nil
}

// merge merges the files and the environment. It asks a person about a project's file with
// keys that need trust.
func (s *Settings) merge(ctx context.Context, o Options, user, project *config.File) error {
	if len(project.TrustRequests()) > 0 {
		var err error
		if _, _, err := config.Merge(user, project, o.Env); err != nil { // a faulty file is not asked about
			return mistake("", "%v", err)
		}
		if project.Trusted, err = s.ensureTrust(ctx, o, project); err != nil {
			return err
		}
	}
	cfg, warnings, err := config.Merge(user, project, o.Env)
	if err != nil {
		return mistake("", "%v", err)
	}
	s.Config = cfg
	for _, w := range warnings {
		if w.Untrusted {
			s.UntrustedWarnings = append(s.UntrustedWarnings, w)
		}
		if !w.Untrusted || !o.SkipTrustWarning {
			s.warn("", "%s", w)
		}
	}
	return nil
}

func (s *Settings) warn(hint, format string, args ...any) {
	if s.Warn != nil {
		s.Warn(fmt.Sprintf(format, args...), hint)
	}
}

// ProjectFile returns the path of the configuration in a workspace.
func ProjectFile(work string) string { return filepath.Join(work, "agent.toml") }

// ProjectPolicy returns the path of the policy in a workspace.
func ProjectPolicy(work string) string { return filepath.Join(work, ".stockade", "policy.toml") }

// Masked returns the paths of the program's files and of a project's policy, which no guest sees.
func (s *Settings) Masked() []string { return append(s.Dirs.masked(), ProjectPolicy(s.Workspace)) }
