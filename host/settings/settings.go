// Package settings finds, reads and merges what a person, a project and an
// administrator have set for one run in one workspace.
//
// The settings are those of agent.toml: the user's, the workspace's, then the
// environment, then flags. What a workspace's file asks for beyond what any may
// set, it gets by a [Trust] in exactly its content. The layers of the policy
// are those of the administrator, the user, the project, the environment and
// flags; what all of them permit is the ceiling, and no setting is higher. An
// [Answer] is an "always" of a person, which is a rule in the next run. All that
// the program itself keeps is in folders of its own ([Dirs]), which must not be
// in the workspace by a variable, and which no guest sees.
//
//	s, err := settings.Load(ctx, settings.Options{Env: os.Getenv, Work: dir, Ask: ask, Warn: warn})
//
// Whatever is wrong with any of it is an [Error]: settings that cannot be read
// must not be missing ones.
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

// Options say where settings come from. Env and Work are needed.
type Options struct {
	Env       func(string) string
	Workspace string // the workspace: absolute, without symbolic links
	// Flags are set over every file and variable; those without a value are not.
	Flags []Flag
	Deny  []string // rules of --deny
	// Ask asks a person whether to trust a workspace's file that wants more than
	// it may set. Was is the trust in an earlier content, or the zero Trust. Nil:
	// nobody can be asked, and the file gets nothing.
	Ask func(ctx context.Context, f *config.File, was Trust) (bool, error)
	// Warn is told what a person should know, and what to do about it, which can
	// be empty. Nil: nobody is told.
	Warn func(text, hint string)
	// SkipTrustWarning: there is no warning of what waits for trust.
	SkipTrustWarning bool
	// Administrator is where the administrator's policy is. Nothing that a user of
	// the program can set changes it. The zero Place is the system's.
	Administrator policyfile.Place
	// AccountHome is the home directory of the user's account, "" if there is none.
	// Nil: the system is asked.
	AccountHome func() string
}

// Flag is a setting of the command line.
type Flag struct{ Name, Key, Value string }

// Settings are what holds in a run. Copies share what they hold.
type Settings struct {
	Config            config.Config
	UntrustedWarnings []config.Warning // what the workspace's file is not trusted to set
	Layers            []policy.Layer
	Ceiling           policy.Ceiling // of all layers
	Dirs              Dirs
	Workspace         string
	Warn              func(text, hint string) // as in Options
}

// Error is a mistake in what is set, or why it must not be believed, and what to
// do about it.
type Error struct {
	What string
	Hint string // can be empty
}

func (e *Error) Error() string { return e.What }

func mistake(hint, format string, args ...any) error {
	return &Error{fmt.Sprintf(format, args...), hint}
}

// Load reads everything and merges it. Errors of what is set are *Error values;
// where nothing can be set there is a *NoPlaceError.
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

// warnUnused says which variables about [model] change nothing, because a file names a
// profile that answers.
func (s *Settings) warnUnused() {
	profile, from := s.Config.Profile, s.Config.Source("profile")
	if profile == "" || profile == config.ModelProfile || strings.HasPrefix(from, "flag ") || strings.HasPrefix(from, "environment ") {
		return
	}
	for _, key := range []string{"model.provider", "model.name", "model.base_url"} {
		if variable, ok := strings.CutPrefix(s.Config.Source(key), "environment "); ok && strings.HasPrefix(variable, "STOCKADE_") {
			s.warn("STOCKADE_PROFILE="+config.ModelProfile+" has [model] answer", "%s is not used: the profile %s answers (%s)", variable, profile, from)
		}
	}
}

// setFlag sets what a flag says. A model that is named is that of the profile that
// answers, and a provider that is named is that of none.
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

// loadOwn is [config.Load] for the user's file. What it may set, a project's may
// not, so who could have written it matters.
func loadOwn(path string) (*config.File, error) {
	data, err := policyfile.User(path).Bytes()
	if err != nil {
		return nil, err
	}
	return config.Parse(path, config.User, data)
}

func orNone(f *config.File, err error) (*config.File, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, mistake("mend the file, or move it away", "%v", err)
	}
	return f, nil
}

// merge lays the files and the environment over each other. A person is asked
// about a project's file that wants more than it may.
func (s *Settings) merge(ctx context.Context, o Options, user, project *config.File) error {
	if len(project.TrustRequests()) > 0 {
		var err error
		if _, _, err := config.Merge(user, project, o.Env); err != nil { // before anybody is asked
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

// ProjectFile is the configuration that comes with a workspace.
func ProjectFile(work string) string { return filepath.Join(work, "agent.toml") }

// ProjectPolicy is the policy that comes with a workspace.
func ProjectPolicy(work string) string { return filepath.Join(work, ".stockade", "policy.toml") }

// Masked is what no guest sees.
func (s *Settings) Masked() []string { return append(s.Dirs.masked(), ProjectPolicy(s.Workspace)) }
