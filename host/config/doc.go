// Package config reads agent.toml: what a user or a project sets, as typed
// values that know where each of them was set.
//
// A setting has a key ("model.name"). Layers set keys, a later one over an
// earlier one: defaults, the user's file, the project's file, the environment
// (STOCKADE_MODEL_NAME). Flags come last and belong to the program.
//
// A project file comes with a repository that somebody else may have written.
// So each key has a class that says what a project may do to it: a preference
// it may set, a limit it may only lower, a switch it may only turn to the
// stricter side. Authority (who is talked to, which directories are shown) it
// gets only when a person has trusted it: exactly this content at exactly this
// place ([File.Trusted]). Which secret is used, what is refused and who is believed
// is never a project's. What a project file sets beyond that is ignored, and the
// user is told ([Warning]).
//
//	user, err := config.Parse(userPath, config.User, data) // read by policyfile.Own(userPath).Bytes()
//	project, err := config.Load("/home/u/ws/agent.toml", config.Project)
//	project.Trusted = trust.Covers(project) // see settings.Trust
//	cfg, warnings, err := config.Merge(user, project, os.Getenv)
//
// One table in this package (keys.go) holds every key but some below: its field, range, default,
// class and text. Files, the environment and [Annotated] (the agent.toml at the
// root of the repository) are driven by it, through package keys.
//
// Below profiles and prices stand tables whose names a person chooses, as in
// [profiles.work]; named.go has their keys. A key of one is a setting like any
// other, under its whole name.
//
// Secrets are never in a file: model.api_key_env names the environment variable
// that holds the provider's key, model.key the secret, and this package reads
// neither.
package config
